"""metrics.jsonl survives kills and odd numbers, and a service never stops a run."""

import errno
import io
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.runs.tracker import Tracker, event_of, read_metrics


def start(run: Path, step: int = 0, services: Sequence[Any] = ()) -> Tracker:
    return Tracker(run, step, services)


def strict(line: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(line, parse_constant=refuse)


def test_events_are_written_immediately_as_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    with start(tmp_path / "run") as tracker:
        tracker.log("train", 100, loss=1 / 3, gradient_norm=math.nan, nested={"list": [math.inf, 1.5]})
        first = strict(path.read_text(encoding="utf-8"))
        tracker.log("note", 100, text="line\u2028break, \ud800 and ü")
    assert first.keys() == {"event", "step", "time", "loss", "gradient_norm", "nested"}
    assert (first["event"], first["step"], first["loss"], first["gradient_norm"]) == ("train", 100, 1 / 3, None)
    assert first["nested"] == {"list": [None, 1.5]}
    assert len(path.read_bytes().splitlines()) == 2
    assert [event_of(strict(line)) for line in path.read_text().splitlines()] == read_metrics(path)
    assert read_metrics(path)[1].figures["text"] == "line\u2028break, \ud800 and ü"


@pytest.mark.parametrize(
    ("written", "number"), [("NaN", None), ("1e999", None), ("-Infinity", None), ("2", 2), ('"a"', None)]
)
def test_a_figure_that_is_not_finite_is_no_number(written: str, number: float | None, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{{"event": "train", "step": 1, "loss": {written}}}\n')
    assert [event.number("loss") for event in read_metrics(path)] == [number]


def test_resuming_drops_the_events_of_steps_that_will_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with start(tmp_path) as tracker:
        for step in (10, 20, 30, 40):
            tracker.log("train", step, loss=float(step))
    kept = path.read_bytes().splitlines(keepends=True)[:2]
    with path.open("a") as file:
        file.write('{"event": "train", "step": 50, "lo')

    assert [event.step for event in read_metrics(path)] == [10, 20, 30, 40]
    with start(tmp_path, step=20) as tracker:
        assert path.read_bytes() == b"".join(kept)
        tracker.log("train", 30, loss=31.0)
    assert [(event.step, event.number("loss")) for event in read_metrics(path)] == [(10, 10.0), (20, 20.0), (30, 31.0)]
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_truncated_file_is_continued_with_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with start(tmp_path) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, loss=0.5)
    content = path.read_bytes()
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with start(tmp_path, step=3) as tracker:
            tracker.log("train", 4)
        events = [strict(line) for line in path.read_text().splitlines()]
        whole = content[: end + 1].count(b"\n")  # a line that lacks its end alone is whole
        assert [event["step"] for event in events] == [*range(1, whole + 1), 4]


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"event": "train"}', '{"step": "7"}', "\0\0", "[" * 100_000])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "metrics.jsonl"
    good = '{"event": "train", "step": 1}\n'
    path.write_text(good + line + "\n" + good)
    with pytest.raises(UserError, match=r"metrics\.jsonl, line 2 is damaged"):
        start(tmp_path, step=5)
    assert path.read_text() == good + line + "\n" + good


def test_a_folder_in_place_of_the_file_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(UserError, match=r"cannot read .*metrics\.jsonl: Is a directory"):
        start(tmp_path)


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    tracker = start(tmp_path)
    tracker._file.close()
    tracker._file = io.TextIOWrapper(io.BufferedWriter(io.FileIO("/dev/full", "w")))
    with pytest.raises(UserError, match=r"cannot write .*metrics\.jsonl: No space left on device"), tracker:
        tracker.log("train", 1)


class Told:
    """Notes what it hears, and fails at a step."""

    name = "the curves"

    def __init__(self, fails_at: int = 0) -> None:
        self.fails_at, self.heard = fails_at, list[object]()

    def log(self, event: str, step: int, fields: Mapping[str, object]) -> None:
        if step == self.fails_at:
            raise BrokenPipeError("the service is gone\nand more lines follow")
        self.heard.append((event, step, dict(fields)))

    def close(self, exit_code: int) -> None:
        self.heard.append(exit_code)


def test_a_service_that_fails_is_left_out_with_one_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, broken = Told(), Told(fails_at=2)
    with start(tmp_path, services=[broken, whole]) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, loss=math.inf)
    assert broken.heard == [("train", 1, {"loss": math.inf})]
    assert whole.heard == [*(("train", step, {"loss": math.inf}) for step in (1, 2, 3)), 0]
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: the curves does not work (the service is gone)")
    assert [event.step for event in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (RuntimeError("wrong"), 1),
        (SystemExit(143), 143),
        (SystemExit(), 0),
        (UserError("a wrong setting"), 2),
        (PermissionError(errno.EACCES, "Permission denied", "theirs"), 2),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_a_service_hears_the_exit_code_of_the_run(tmp_path: Path, error: BaseException | None, code: int) -> None:
    service = Told()
    with suppress(BaseException), start(tmp_path, services=[service]):
        if error is not None:
            raise error
    assert service.heard == [code]
