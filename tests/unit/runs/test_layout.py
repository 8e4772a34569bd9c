"""The names of the files of a run are part of the contract with users and their scripts."""

from pathlib import Path

import pytest

from nmt.runs.layout import RunLayout, hypotheses_file, scores_file, step_folder_name, step_of_folder_name


def test_files_have_the_promised_names() -> None:
    run = RunLayout(Path("outputs/base"))
    paths = [
        *(run.settings, run.environment, run.metrics, run.report, run.comparison("big")),
        *(run.checkpoints, run.averaged, run.checkpoints / step_folder_name(1234)),
        *(scores_file(run.evaluation, "test"), hypotheses_file(run.evaluation, "test")),
    ]
    assert [str(path.relative_to(run.folder)) for path in paths] == [
        *("config.yaml", "environment.json", "metrics.jsonl", "report.html", "compared-big.html"),
        *("checkpoints", "checkpoints/averaged", "checkpoints/step-00001234"),
        *("eval/test.json", "eval/test.hyp.txt"),
    ]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-00001234", 1234),
        ("step-1234567890", 1234567890),
        ("step-12", None),
        ("last", None),
        ("step-00001234.partial", None),
    ],
)
def test_a_step_is_read_from_the_name_of_its_folder(name: str, step: int | None) -> None:
    assert step_of_folder_name(name) == step
