"""The tool that compares the results of two versions of the code."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import same_results.__main__ as tool
from same_results.cases import CASES, Case, with_needed
from same_results.records import Record, first_difference, read_results
from same_results.text import sentences
from same_results.versions import FailedCaseError, Version

pytestmark = pytest.mark.slow
TOOL = Path(__file__).parents[2] / "scripts" / "dev" / "same_results"
EVENTS = [{"event": "train", "step": step, "time": 1.5 * step, "loss": 7 - step / 3} for step in range(1, 4)]
WEIGHTS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.zeros(4)}


def written(folder: Path, events: list[dict[str, object]], weights: dict[str, torch.Tensor]) -> Record:
    """Return the record of a folder with these events and weights."""
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    save_file(weights, folder / "model.safetensors", metadata={"folder": folder.name})
    (folder / "text.de").write_text("ein Hund\nein Tisch\n")
    (folder / "text.tokens").write_bytes(b"\0\1\2")
    return read_results(folder, "*")


def test_equal_results_have_no_difference_whatever_their_times(tmp_path: Path) -> None:
    later = [{**event, "time": 99.0, "tokens_per_second": 3.0} for event in EVENTS]
    one, other = written(tmp_path / "one", EVENTS, WEIGHTS), written(tmp_path / "other", later, WEIGHTS)
    assert one == other
    assert len(one) == 1 + 3 * 3 + 2 + 2 + 1
    assert first_difference(one, other) == ""


def test_a_difference_in_the_last_digit_is_found(tmp_path: Path) -> None:
    changed = [*EVENTS[:2], {**EVENTS[2], "loss": 6.0 + 1e-15}]
    one, other = written(tmp_path / "one", EVENTS, WEIGHTS), written(tmp_path / "other", changed, WEIGHTS)
    assert first_difference(one, other) == "metrics.jsonl, line 3, loss: before 6.0, after 6.000000000000001"


def test_a_difference_in_one_weight_is_found(tmp_path: Path) -> None:
    changed = {**WEIGHTS, "b": WEIGHTS["b"].nextafter(torch.tensor(9.0))}
    one, other = written(tmp_path / "one", EVENTS, WEIGHTS), written(tmp_path / "other", EVENTS, changed)
    assert first_difference(one, other).startswith("model.safetensors, b: before F32 [2, 3] ")


def test_missing_results_and_other_files_are_differences(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one", EVENTS, WEIGHTS), written(tmp_path / "other", EVENTS[:2], WEIGHTS)
    assert "only before: " in first_difference(one, one[:-1])
    assert "only after: " in first_difference(one[:-1], one)
    assert first_difference(one, other).startswith("before has metrics.jsonl, line 3, event")
    assert first_difference(one, read_results(tmp_path / "one", "text.*")).startswith("before has files *")


def test_cases_need_only_earlier_cases() -> None:
    earlier: set[str] = set()
    for case in CASES.values():
        assert set(case.needs) <= earlier
        earlier.add(case.name)
    assert with_needed(()) == list(CASES.values())
    assert [case.name for case in with_needed(("beam",))] == ["data_toy", "plain", "beam"]


def test_unknown_case_and_folder_without_the_package_are_refused(tmp_path: Path) -> None:
    source = str(TOOL.parents[2] / "src")
    for words, message in (
        ([source, source, "--only", "plainn"], "there is no case plainn: choose from data_toy, "),
        ([source, str(tmp_path)], "has no nmt/__init__.py"),
    ):
        done = subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr


def test_text_is_fixed_and_each_word_has_a_link() -> None:
    made = sentences(50, seed=3)
    assert made == sentences(50, seed=3) != sentences(50, seed=4)
    for each in made:
        linked = [tuple(map(int, link.split("-"))) for link in each.links.split()]
        assert [source for source, _ in linked] == list(range(len(each.source.split())))
        target = each.target.split()
        assert set(range(len(target))) - {place for _, place in linked} == {target.index("hat")}
        assert each.tree.count("(") == each.tree.count(")")


def version(folder: Path, name: str, body: str) -> Version:
    """Return a version whose command line is this program."""
    package = folder / f"source-{name}" / "nmt"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(f"import sys\n{body}\n")
    return Version(package.parent, folder / name)


def compared(folder: Path, one: str, other: str, *cases: Case) -> list[str]:
    with ThreadPoolExecutor(1) as pool:
        return tool.compare(version(folder, "before", one), version(folder, "after", other), list(cases), pool)


WRITE = "open('made.txt', 'a').write(f'{sys.argv[-1]} %s\\n')"
WRITING = Case(name="writing", commands=(("data", "x"),), files=("made.txt",))
CONTINUING = Case(name="continuing", commands=(("data", "y"),), files=("made.txt",), needs=("writing",), old=True)


def test_versions_that_write_the_same_are_equal(tmp_path: Path) -> None:
    assert compared(tmp_path, WRITE % 1, WRITE % 1, WRITING, CONTINUING) == []
    assert (tmp_path / "after" / "made.txt").read_text() == "x 1\n"


def test_versions_that_write_other_files_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path, WRITE % 1, WRITE % 2, WRITING, CONTINUING) == ["writing", "continuing"]
    assert "made.txt, line 1: before x 1, after x 2" in capsys.readouterr().out


def test_old_files_are_those_of_the_first_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    continuing = Case(name="continuing", commands=(("data", "y"),), files=("made.txt",), old=True)
    assert compared(tmp_path, WRITE % 1, WRITE % 1, WRITING, continuing) == []
    fails_on_old = "\nif sys.argv[-1] == 'y': assert open('made.txt').read() != 'x 1\\n', 'old'"
    (tmp_path / "again").mkdir()
    again = compared(tmp_path / "again", WRITE % 1, f"{fails_on_old}\n{WRITE % 1}", WRITING, continuing)
    assert again == ["continuing"]
    assert "AssertionError: old" in capsys.readouterr().out


def test_a_case_that_fails_in_both_versions_is_not_equal(tmp_path: Path) -> None:
    assert compared(tmp_path, "sys.exit(2)", "sys.exit(2)", WRITING) == ["writing"]


def test_messages_are_compared_if_commands_must_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    errors = Case(name="errors", commands=(("train", "x"), ("data", "y")), code=2)
    fail = "import os; print('nmt: %s', os.getcwd(), file=sys.stderr); sys.exit(2)"
    assert compared(tmp_path, fail % 1, fail % 1, errors) == []
    (tmp_path / "other").mkdir()
    assert compared(tmp_path / "other", fail % 1, fail % 2, errors) == ["errors"]
    assert "train x, line 1: before nmt: 1 FOLDER, after nmt: 2 FOLDER" in capsys.readouterr().out


def test_a_command_that_ends_with_another_exit_code_has_failed(tmp_path: Path) -> None:
    case = Case(name="errors", commands=(("train", "x"),), code=2)
    failing = version(tmp_path, "before", "print('done')")
    with pytest.raises(FailedCaseError, match="train x ended with exit code 0:\ndone"):
        failing.record(case, failing)
