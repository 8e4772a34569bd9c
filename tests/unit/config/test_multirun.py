"""Tests of several runs by one command."""

from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.config.multirun import multirun


@pytest.mark.parametrize("name", ["plain", "it's, a [folder] = {1}", "ends with a backslash\\", "a\\'b"])
def test_outputs_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    seen: list[list[str]] = []
    multirun(seen.append, ["seed=1,2"], outputs=str(tmp_path / name))
    assert seen == [["seed=1"], ["seed=2"]]
    assert (tmp_path / name / "multirun").is_dir()


def test_settings_of_a_mixture_may_have_several_values(tmp_path: Path) -> None:
    weights: list[float] = []
    multirun(
        lambda words: weights.append(compose(words).data.corpora()["more"].weight),
        ["data.mixture.more.train=[a.en,a.de]", "data.mixture.more.weight=1,2"],
        outputs=str(tmp_path),
    )
    assert weights == [1, 2]
