"""`nmt synthesize` on a cluster of Ray: the same corpus as on this machine, also if workers and drivers are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.synthesis.elsewhere import Chunk, Item, translating
from nmt.synthesis.model import PackedModel, pack
from tests.integration.conftest import corpus, settings, whole
from tests.integration.toy import environment, succeed
from tests.synthesis.test_command import contents, made, write_text
from tests.synthesis.test_command import translating as overrides
from tests.unit.data.test_ray_engine import command_lines, needs_ray, until

__all__ = ["corpus", "settings", "whole"]
pytestmark = [needs_ray, pytest.mark.slow]


@pytest.fixture
def words(settings: list[str], corpus: Path, whole: Path, tmp_path: Path) -> list[str]:
    """Return overrides that translate a text in 20 shards."""
    text = write_text(corpus, tmp_path)
    lines = text.read_text(encoding="utf-8").splitlines()
    text.write_text("\n".join(lines * 6), encoding="utf-8")
    return [*overrides(settings, whole, text, tmp_path / "made"), "runtime.workers=2"]


def on_ray(words: list[str], folder: Path) -> list[str]:
    return [*words, "data.engine=ray", f"output={folder}"]


def test_the_corpus_is_the_same_to_the_byte(words: list[str], tmp_path: Path) -> None:
    made(words)
    said = made(on_ray(words, tmp_path / "ray"))
    assert "210 lines in 21 shards, 21 to translate" in said
    assert len(contents(tmp_path / "ray")) == 21
    assert contents(tmp_path / "ray") == contents(tmp_path / "made")
    assert (tmp_path / "ray" / "manifest.json").read_bytes() == (tmp_path / "made" / "manifest.json").read_bytes()
    assert "0 to translate" in made([*words, f"output={tmp_path / 'ray'}"])


def dying_once(packed: PackedModel, mark: Path) -> Callable[[Item], object]:
    """Return what a worker does, which is killed at one shard."""
    answer = translating(packed)

    def die(item: Item) -> object:
        if isinstance(item, Chunk) and item.number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer(item)

    return die


def test_the_shard_of_a_killed_worker_is_translated_by_another_one(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(words)
    mark = tmp_path / "died"
    config = compose(words)
    packed = pack(config)
    monkeypatch.setattr("nmt.synthesis.elsewhere.translating", lambda *_: None)
    monkeypatch.setattr("nmt.synthesis.elsewhere.pack", lambda _: packed)
    from nmt.data.ray_engine import RayEngine

    start = RayEngine.device_workers
    monkeypatch.setattr(
        RayEngine, "device_workers", lambda self, purpose, make, *args: start(self, purpose, dying_once, packed, mark)
    )
    made(on_ray(words, tmp_path / "ray"))
    assert mark.exists()
    assert contents(tmp_path / "ray") == contents(tmp_path / "made")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_ended_driver_leaves_no_process_and_the_same_command_goes_on(
    words: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    made(words)
    folder = tmp_path / "ray"
    temporary = {"RAY_TMPDIR": f"/tmp/nmt-ray-{os.getpid()}"}  # a short path: Ray's sockets are in it
    arguments = ["synthesize", *on_ray(words, folder)]
    driver = subprocess.Popen([sys.executable, "-m", "nmt", *arguments], env={**environment(), **temporary})
    until(lambda: len(list(folder.glob("*.jsonl"))) > 2)
    os.kill(driver.pid, number)
    driver.wait()
    until(lambda: not any(temporary["RAY_TMPDIR"] in line for line in command_lines()))
    before = contents(folder)
    times = {name: (folder / name).stat().st_mtime_ns for name in before}
    assert 2 < len(before) < 21
    assert f"{21 - len(before)} to translate" in succeed(arguments)
    assert contents(folder) == contents(tmp_path / "made")
    assert all((folder / name).stat().st_mtime_ns == time for name, time in times.items())
