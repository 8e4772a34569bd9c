"""Translation on workers elsewhere: the same shards as in this process; the model goes to them."""

import errno
import gzip
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.data.engine import Engine, Workers
from nmt.runs.layout import TRAINER
from nmt.synthesis import command, elsewhere
from nmt.synthesis.elsewhere import Chunk
from nmt.synthesis.model import pack
from tests.integration.toy import call, succeed
from tests.synthesis.test_command import contents, made, refused
from tests.synthesis.test_command import shards as shards  # noqa: PLC0414 - a fixture
from tests.synthesis.test_command import text as text  # noqa: PLC0414
from tests.synthesis.test_command import words as words  # noqa: PLC0414


class Backwards:
    """A worker that gets everything by pickle, and answers the last of all items first."""

    def __init__(self, make: Callable[..., Callable[[Any], Any]], args: tuple[Any, ...]) -> None:
        make, args = pickle.loads(pickle.dumps((make, args)))
        self._function = make(*args)

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in reversed(list(items)):
            yield pickle.loads(pickle.dumps(self._function(pickle.loads(pickle.dumps(item)))))

    def close(self) -> None:
        pass


class Elsewhere(Engine):
    """An engine whose workers have devices."""

    has_devices = True

    def device_workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> Workers:
        return Backwards(make, args)


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "load", lambda *_: Elsewhere)
    monkeypatch.setattr(elsewhere, "open_engine", Elsewhere)


def test_shards_are_the_same_as_those_of_this_process(words: list[str], shards: Path, tmp_path: Path) -> None:
    said = made(words)
    assert "35 lines in 4 shards, 4 to translate" in said
    assert "35 pairs; score" in said
    assert contents(tmp_path / "made") == contents(shards)
    for number in (0, 3):
        (tmp_path / "made" / f"train-0000{number}-of-00004.jsonl").unlink()
    assert "2 to translate" in made(words)
    assert contents(tmp_path / "made") == contents(shards)
    manifests = [(folder / "manifest.json").read_bytes() for folder in (tmp_path / "made", shards)]
    assert manifests[0] == manifests[1]


def test_an_interrupted_translation_keeps_what_is_done(
    words: list[str], shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Backwards.map

    def interrupted(self: Backwards, items: Iterable[Any]) -> Iterator[Any]:
        for number, each in enumerate(answer(self, items)):
            if number == 2:
                raise SystemExit(9)
            yield each

    monkeypatch.setattr(Backwards, "map", interrupted)
    assert call(["synthesize", *words]).returncode == 9
    assert [*contents(tmp_path / "made")] == ["train-00002-of-00004.jsonl", "train-00003-of-00004.jsonl"]
    monkeypatch.undo()
    monkeypatch.setattr(command, "load", lambda *_: Elsewhere)
    monkeypatch.setattr(elsewhere, "open_engine", Elsewhere)
    assert "2 to translate" in made(words)
    assert contents(tmp_path / "made") == contents(shards)


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, shard: str) -> None:
    """Let the disk be full from the moment when the first bytes of a shard are written."""
    write = Path.write_bytes
    full: list[Path] = []

    def write_if_there_is_space(self: Path, content: bytes) -> int:
        if shard in self.name or full:
            full.append(self)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", write_if_there_is_space)


def test_a_full_disk_keeps_what_is_done(words: list[str], shards: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        fill_the_disk(patched, "train-00001")
        assert "No space left on device" in refused(words)
    assert [*contents(tmp_path / "made")] == ["train-00002-of-00004.jsonl", "train-00003-of-00004.jsonl"]
    assert "2 to translate" in made(words)
    assert contents(tmp_path / "made") == contents(shards)


def test_the_model_and_the_files_of_its_settings_are_sent(words: list[str], tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("king\tkoenig\n")
    config = compose([*words, f"decoding.terms={terms}", "decoding.ensemble=[last]"])
    packed = pack(config)
    assert len(packed.folders) == 2
    assert not any(TRAINER in files for files in packed.folders)
    terms.unlink()
    target = tmp_path / "there"
    target.mkdir()
    unpacked = packed.unpack(target)
    assert Path(unpacked.decoding.terms).read_text() == "king\tkoenig\n"
    assert Path(unpacked.checkpoint).parent == target
    assert [Path(each).parent for each in unpacked.decoding.ensemble] == [target]


def test_a_compressed_glossary_in_the_home_is_sent(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    content = b"king\tkoenig\n"
    (tmp_path / "terms.tsv").write_bytes(content)
    (tmp_path / "terms.tsv.gz").write_bytes(gzip.compress(content))
    made([*words, "output=" + str(tmp_path / "plain"), f"decoding.terms={tmp_path}/terms.tsv"])
    made([*words, "decoding.terms='~/terms.tsv.gz'"])
    assert contents(tmp_path / "made") == contents(tmp_path / "plain")
    assert any(b"koenig" in shard for shard in contents(tmp_path / "made").values())


def test_further_processes_of_torchrun_do_nothing(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert succeed(["synthesize", *words]) == ""
    assert not (tmp_path / "made").exists()


def test_missing_files_and_other_engines_are_refused(words: list[str]) -> None:
    assert "cannot read decoding.terms=none.tsv: No such file" in refused([*words, "decoding.terms=none.tsv"])
    assert "no checkpoint 77" in refused([*words, "checkpoint=77"])
    assert "translates on this machine only: use engine=torch" in refused([*words, "engine=ctranslate2"])


def test_only_the_lines_of_missing_shards_are_sent(words: list[str], tmp_path: Path) -> None:
    made(words)
    (tmp_path / "made" / "train-00001-of-00004.jsonl").unlink()
    sent: list[Any] = []
    answer = Backwards.map

    def noting(self: Backwards, items: Iterable[Any]) -> Iterator[Any]:
        noted = list(items)
        sent.extend(noted)
        return answer(self, noted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Backwards, "map", noting)
        made(words)
    (chunk,) = [each for each in sent if isinstance(each, Chunk)]
    assert (chunk.number, chunk.positions, len(chunk.lines)) == (1, range(10, 20), 10)
