"""The manifest: typed results of existing manifests, and one line for damaged ones."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nmt.data.layout import MANIFEST
from nmt.data.manifest import PreparationTasks, read_manifest
from nmt.data.records import JsonObject
from nmt.data.store import PairStore
from nmt.errors import UserError

CORPUS = Path(__file__).parents[2] / "golden" / "format-1" / "data" / "toy"


def test_results_of_an_existing_manifest_are_read_without_loss() -> None:
    found, written = read_manifest(CORPUS), json.loads((CORPUS / MANIFEST).read_text())["steps"]
    assert {name: asdict(record) for name, record in found.tasks.items()} == written
    for split in ("train", "valid", "test"):
        collected = {"line_breaks": 0, **written[f"collect {split}"]["result"]}
        assert asdict(found.collected(split)) == collected
        assert asdict(found.encoded(split)) == written[f"encode {split}"]["result"]
        assert found.encoded(split).pairs == len(PairStore.open(CORPUS, split))
    assert asdict(found.tokenizer()) == written["tokenizer"]["result"]


@pytest.mark.parametrize("result", [{}, {"read": 1}, {"read": 1, "kept": 1, "dropped": {}, "more": 1}])
def test_result_of_another_form_is_one_error(tmp_path: Path, result: dict[str, Any]) -> None:
    PreparationTasks(tmp_path, {}, lambda _: None).run("collect train", {}, [], lambda: result)
    with pytest.raises(UserError, match=r"manifest .* delete it and run `make data`"):
        read_manifest(tmp_path).collected("train")


def test_tasks_say_why_they_run_again(tmp_path: Path) -> None:
    lines: list[str] = []

    def run(setting: int) -> str:
        lines.clear()
        task = PreparationTasks(tmp_path, {}, lines.append)
        task.run("task", {"setting": setting}, ["out"], lambda: {"size": (tmp_path / "out").write_text("text")})
        return lines[0] if lines else ""

    assert run(1) == "task: done in 0.0 s"
    assert run(1) == ""
    assert run(2) == "task: running again: its setting changed"
    (tmp_path / "out").unlink()
    assert run(2) == "task: running again: out is missing"
    (tmp_path / "out").write_text("other")
    assert run(2) == "task: running again: out is damaged"


class KilledError(BaseException):
    """Simulates the end of the process: no code may catch it."""


def test_no_file_of_earlier_settings_stays_if_a_run_is_killed(tmp_path: Path) -> None:
    def run(outputs: list[str], say: Callable[[str], None] = lambda _: None) -> None:
        def write() -> JsonObject:
            return {name: (tmp_path / name).write_text("text") for name in outputs}

        PreparationTasks(tmp_path, {}, say).run("task", {"outputs": outputs}, outputs, write)

    def killed_when_done(line: str) -> None:
        if "done" in line:
            raise KilledError

    run(["source.model", "target.model"])
    with pytest.raises(KilledError):
        run(["joint.model"], killed_when_done)
    run(["joint.model"])
    assert [path.name for path in tmp_path.glob("*.model")] == ["joint.model"]


def test_minor_inputs_are_no_reason_to_run_again(tmp_path: Path) -> None:
    lines: list[str] = []

    def run(setting: int, weight: int) -> str:
        lines.clear()
        inputs, task = {"setting": setting, "weight": weight}, PreparationTasks(tmp_path, {}, lines.append)
        task.run("task", inputs, ["out"], lambda: {"size": (tmp_path / "out").write_text(str(weight))}, ["weight"])
        return lines[0] if lines else ""

    assert run(1, 1) == "task: done in 0.0 s"
    assert run(1, 2) == "task: kept, although its weight changed"
    assert ((tmp_path / "out").read_text(), read_manifest(tmp_path).tasks["task"].inputs["weight"]) == ("1", 1)
    assert run(1, 1) == ""
    assert run(2, 2) == "task: running again: its setting changed"
    assert ((tmp_path / "out").read_text(), read_manifest(tmp_path).tasks["task"].inputs["weight"]) == ("2", 2)
