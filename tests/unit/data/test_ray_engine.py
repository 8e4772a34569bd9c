"""Ray does the same as this machine's processes, also if workers and drivers are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.config.tree import Config
from nmt.data import encode
from nmt.data.filters import pipeline as filters
from nmt.data.prepare import prepare
from nmt.data.ray_engine import RayEngine, Task, run_task, versions
from nmt.errors import UserError
from tests.integration.toy import environment, pairs

needs_ray = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import ray"], capture_output=True, check=False).returncode != 0,
    reason="needs the extra ray",
)
"""In another process, because Ray is slow to import and its threads outlive the import."""
PAIRS = 900


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    """Return settings of a corpus with repeated pairs, empty sides and long sentences."""
    found = pairs(PAIRS, 3)
    found += [found[5], ("", "x"), ("x " * 300, "x"), found[7]]
    for side, language in enumerate(("en", "de")):
        (tmp_path / f"toy.{language}").write_text("".join(f"{pair[side]}\n" for pair in found))
    return [
        *("data.source=files", "data.valid=[]", "data.test=[]", "data.hold_out=0.05", "data.deduplicate=true"),
        *("data.max_words=50", "data.max_ratio=3", "tokenizer.vocab_size=80", "data.max_pieces=24"),
        f"data.train=[{tmp_path / 'toy.en'},{tmp_path / 'toy.de'}]",
        f"paths.data={tmp_path}",
    ]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters.read_chunks, "__defaults__", (90,))
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 70)


def content(config: Config) -> dict[str, bytes]:
    """Return the files of a corpus; in the manifest, seconds and the name of the corpus do not count."""
    names = [file for file in config.data_folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    return {file.name: file.read_bytes() for file in names if file.name != "manifest.json"}


def prepared(settings: list[str], *more: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    config = compose([*settings, *more])
    manifest = prepare(config, lambda _: None)
    return content(config), {name: (task.outputs, task.result) for name, task in manifest.tasks.items()}


def test_without_the_package_an_error_says_how_to_install_it(
    settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    with pytest.raises(UserError, match=r"needs the package ray: .*pip install 'ray>="):
        prepare(compose([*settings, "data.engine=ray"]), lambda _: None)


def test_a_worker_makes_each_function_once() -> None:
    made: list[int] = []

    def make(number: int) -> Callable[[int], int]:
        made.append(number)
        return lambda item: number * item

    tasks = {f"key {number}": Task(make, (number,), versions(), "test") for number in range(3)}
    found = [run_task(task, key, (item,)) for item in (1, 10) for key, task in tasks.items()]
    assert found == [0, 1, 2, 0, 10, 20]
    assert made == [0, 1, 2]


def test_a_worker_of_another_version_is_refused() -> None:
    with pytest.raises(UserError, match=r"the Ray worker on \S+ has nmt .*, but 0\.0 is here: install the same"):
        Task(failing, (), {**versions(), "nmt": "0.0"}, "test").function()


@needs_ray
@pytest.mark.slow
def test_the_prepared_folder_is_the_same_to_the_byte(settings: list[str]) -> None:
    alone = prepared(settings, "data.corpus=alone", "runtime.workers=1")
    assert prepared(settings, "data.corpus=ray", "data.engine=ray", "runtime.workers=2") == alone
    assert alone[1]["collect train"][1]["dropped"]["duplicates"] > 2


@needs_ray
@pytest.mark.slow
def test_results_are_in_order_however_workers_finish_and_errors_come_back() -> None:
    with closing(RayEngine(compose(["data.engine=ray", "runtime.workers=2"]))) as engine:
        assert list(engine.map("sleeps", range(12), sleeping, 0.05)) == list(range(12))
        with pytest.raises(UserError, match=r"^seven$"):
            list(engine.map("fails", range(12), failing))
        with pytest.raises(UserError, match=r"a Ray worker that fails failed \(division by zero\): run the same"):
            list(engine.map("fails", range(2), dividing))


@needs_ray
@pytest.mark.slow
def test_the_work_of_a_killed_worker_is_done_by_another_one(tmp_path: Path) -> None:
    with closing(RayEngine(compose(["data.engine=ray", "runtime.workers=2"]))) as engine:
        assert list(engine.map("dies", range(12), dying, tmp_path / "died")) == list(range(12))
        assert (tmp_path / "died").exists()


@needs_ray
@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with (
        closing(RayEngine(compose(["data.engine=ray"]))) as engine,
        pytest.raises(UserError, match=r"cannot connect to RAY_ADDRESS=127.0.0.1:1 ") as error,
    ):
        next(engine.map("sleeps", [1], sleeping, 0))
    assert "\n" not in str(error.value)


@needs_ray
@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_the_same_command_goes_on(settings: list[str], tmp_path: Path) -> None:
    alone = prepared(settings, "data.corpus=alone", "runtime.workers=1")
    words = [*settings, "data.corpus=ray", "data.engine=ray", "runtime.workers=2"]
    temporary = {"RAY_TMPDIR": f"/tmp/nmt-ray-{os.getpid()}"}  # a short path: Ray's sockets are in it
    driver = subprocess.Popen([sys.executable, "-m", "nmt", "data", *words], env={**environment(), **temporary})
    until((tmp_path / "ray" / "manifest.json").exists)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    until(lambda: not any(temporary["RAY_TMPDIR"] in line for line in command_lines()))
    assert prepared(words) == alone


def sleeping(seconds: float) -> Callable[[int], int]:
    def sleep(item: int) -> int:
        time.sleep(seconds * (item % 3))
        return item

    return sleep


def failing() -> Callable[[int], int]:
    def fail(item: int) -> int:
        if item == 7:
            raise UserError("seven")
        return item

    return fail


def dividing() -> Callable[[int], float]:
    return lambda item: item / 0


def dying(mark: Path) -> Callable[[int], int]:
    def die_once(item: int) -> int:
        if item == 5 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return die_once


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def command_lines() -> Iterator[str]:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield each.read_bytes().decode(errors="replace")
        except OSError:  # ended meanwhile
            continue
