"""Tests of several runs by one command."""

from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.config.multirun import multirun


@pytest.mark.parametrize("name", ["plain", "it's, a [folder] = {1}", "ends with a backslash\\", "a\\'b"])
def test_outputs_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    seen: list[list[str]] = []
    multirun(seen.append, ["batch.step=1,2"], outputs=str(tmp_path / name))
    assert seen == [["batch.step=1"], ["batch.step=2"]]
    assert (tmp_path / name / "multirun").is_dir()


def test_runs_with_several_seeds_have_names_of_their_own(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    multirun(seen.append, ["seed=1,2", "experiment=demo"], outputs=str(tmp_path))
    assert [compose(overrides).name for overrides in seen] == ["demo-seed1", "demo-seed2"]
    assert [compose(overrides).seed for overrides in seen] == [1, 2]


@pytest.mark.parametrize("words", [["seed=1,2", "name=a,b"], ["seed=3", "name=a,b"], ["seed=3", "batch.step=1,2"]])
def test_names_stay_as_they_are_given(words: list[str], tmp_path: Path) -> None:
    seen: list[list[str]] = []
    multirun(seen.append, words, outputs=str(tmp_path))
    assert {compose(overrides).name for overrides in seen} <= {"a", "b", compose([]).name}
