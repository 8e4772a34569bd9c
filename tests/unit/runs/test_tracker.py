"""metrics.jsonl survives kills and odd numbers, and a service never stops a run."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.runs.services import Service
from nmt.runs.tracker import Tracker, read_metrics


def strict(line: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(line, parse_constant=refuse)


def test_events_are_written_immediately_as_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    with Tracker(path) as tracker:
        tracker.log("train", 100, loss=1 / 3, gradient_norm=math.nan)
        first = strict(path.read_text(encoding="utf-8"))
        tracker.log("note", 100, text="line\u2028break, \ud800 and ü")
    assert first.keys() == {"event", "step", "time", "loss", "gradient_norm"}
    assert (first["event"], first["step"], first["loss"], first["gradient_norm"]) == ("train", 100, 1 / 3, None)
    events = read_metrics(path)
    assert [event.number("loss") for event in events] == [1 / 3, None]
    assert events[1].figures["text"] == "line\u2028break, \ud800 and ü"


def test_resuming_drops_the_events_of_steps_that_will_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Tracker(path) as tracker:
        for step in (10, 20, 30, 40):
            tracker.log("train", step, loss=float(step))
    kept = path.read_bytes().splitlines(keepends=True)[:2]
    with Tracker(path, step=20) as tracker:
        assert path.read_bytes() == b"".join(kept)
        tracker.log("train", 30, loss=31.0)
    assert [(event.step, event.number("loss")) for event in read_metrics(path)] == [(10, 10.0), (20, 20.0), (30, 31.0)]
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_truncated_file_is_continued_with_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Tracker(path) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, loss=0.5)
    content = path.read_bytes()
    for end in range(0, len(content), 5):
        path.write_bytes(content[:end])
        with Tracker(path, step=3) as tracker:
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
        Tracker(path, step=5)
    assert path.read_text() == good + line + "\n" + good


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    with Tracker(tmp_path / "metrics.jsonl") as tracker:
        (tmp_path / "metrics.jsonl").unlink()
        (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
        with pytest.raises(UserError, match=r"cannot write .*metrics\.jsonl: No space left on device"):
            tracker.log("train", 1)


def test_a_service_that_fails_is_left_out_with_one_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard, calls = list[object](), list[int]()

    def fail(event: str, step: int, fields: object) -> None:
        calls.append(step)
        if step == 2:
            raise BrokenPipeError("the service is gone\nand more lines follow")

    whole = Service("whole", lambda event, step, fields: heard.append((event, step, fields)), heard.append)
    broken = Service("the curves", fail, calls.append)
    with suppress(SystemExit), Tracker(tmp_path / "metrics.jsonl", services=[broken, whole]) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, loss=math.inf)
        raise SystemExit(143)
    assert calls == [1, 2]
    assert heard == [*(("train", step, {"loss": math.inf}) for step in (1, 2, 3)), 1]
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: the curves does not work (the service is gone)")
    assert [event.step for event in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]
