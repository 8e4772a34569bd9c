"""Under torchrun, only one process prints an error or runs a single-process command."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt import cli
from nmt.commands import local_copies


@pytest.fixture(autouse=True)
def _second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")


def test_an_error_of_all_processes_is_printed_only_by_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", f"paths.data={tmp_path}", f"paths.outputs={tmp_path}", "runtime.device=cpu", "runtime.threads=1"]
    assert cli.main(words) == 2
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("RANK", "0")
    assert cli.main(words) == 2
    assert capsys.readouterr().err.count("run `make data`") == 1


@pytest.mark.parametrize(("stage", "times"), [("data", 0), ("report", 0), ("translate", 0), ("eval", 1), ("train", 1)])
def test_a_single_process_command_runs_only_in_the_first_process(
    stage: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    monkeypatch.setattr(local_copies, "import_module", lambda _: SimpleNamespace(run=runs.append))
    assert cli.main([stage]) == 0
    assert len(runs) == times
