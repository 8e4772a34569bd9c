"""What a run returns to a search, and its record."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.jobs import Swept
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError
from nmt.sweeps.watch import read_result, watch

VALIDATIONS = (
    {"loss": 3.0, "perplexity": 20.0, "bleu": 5.0},
    {"loss": 2.0, "perplexity": 7.0, "bleu": 9.0},
    {"loss": 2.5, "perplexity": 12.0, "bleu": 11.0},
)


def finished(folder: Path, *words: str, validations: tuple[Mapping[str, float], ...] = VALIDATIONS) -> Config:
    """Return the settings of a run that has these validations, and a score."""
    config = compose(["experiment=demo", f"paths.outputs={folder}", *words])
    config.run_folder.mkdir(parents=True, exist_ok=True)
    events: list[dict[str, Any]] = [{"event": "start", "step": 0, "time": 1}]
    events += [{"event": "valid", "step": step, "time": 2, **each} for step, each in enumerate(validations, start=1)]
    (config.run_folder / "metrics.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    (config.run_folder / "eval").mkdir(exist_ok=True)
    score = {"score": 41.5, "signature": "a"}
    (config.run_folder / "eval" / "test.json").write_text(
        json.dumps({"split": "test", "bleu": score, "bleu_paper": score, "chrf": score, "ter": score})
    )
    return config


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ([], 2.0),
        (["sweep.metric=perplexity"], 7.0),
        (["sweep.metric=bleu"], 9.0),
        (["sweep.metric=test.bleu"], 41.5),
        (["sweep.metric=unseen.bleu"], None),
        (["sweep.metric=test.nosuch"], None),
    ],
)
def test_the_result_is_the_named_figure_of_the_best_validation_or_score(
    words: list[str], result: float | None, tmp_path: Path
) -> None:
    assert read_result(finished(tmp_path, *words)) == result


def test_of_equal_validations_the_first_is_the_best(tmp_path: Path) -> None:
    validations = [{"loss": 3.0, "bleu": 9.0}, {"loss": 2.0, "bleu": 7.0}, {"loss": 2.0, "bleu": 9.0}]
    assert read_result(finished(tmp_path, "sweep.metric=bleu", validations=tuple(validations))) == 7.0


def test_a_run_without_validations_has_no_result(tmp_path: Path) -> None:
    assert read_result(finished(tmp_path, validations=())) is None


@pytest.mark.parametrize("metric", ["nosuch", "a.b.c", "../x.bleu", ""])
def test_other_metrics_are_refused(metric: str) -> None:
    with pytest.raises(ConfigError, match="is not one of loss, perplexity, bleu"):
        compose([f"sweep.metric='{metric}'"])


def swept(*, searching: bool = True, **values: str) -> Swept:
    return Swept(0, {key.replace("__", "."): value for key, value in values.items()}, "demo", searching)


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a sweep in the order of the runs."""
    found = [json.loads(file.read_text()) for file in (folder / "sweeps" / "demo").glob("*.json")]
    return sorted(found, key=lambda each: (each["number"], str(each["values"])))


def test_a_search_without_a_result_is_told_what_to_do(tmp_path: Path) -> None:
    config = finished(tmp_path, "sweep.metric=test.comet")
    with pytest.raises(UserError, match=r"no test\.comet.*`nmt eval` does not compute it"):
        watch(swept(seed="1"), "all", config, lambda: None)
    assert watch(swept(seed="1", searching=False), "all", config, lambda: None) is None


@pytest.mark.parametrize(
    ("command", "metric", "said"),
    [("train", "test.bleu", "use `nmt all`"), ("all", "other.bleu", "none of evaluation.splits")],
)
def test_a_search_for_a_score_that_is_not_computed_ends_before_its_first_run(
    command: str, metric: str, said: str, tmp_path: Path
) -> None:
    config = finished(tmp_path, f"sweep.metric={metric}")
    with pytest.raises(ConfigError, match=said):
        watch(swept(), command, config, lambda: pytest.fail("a run was trained"))
    watch(swept(searching=False), command, config, lambda: None)


def test_a_run_that_diverged_says_so_and_not_that_it_was_never_validated(tmp_path: Path) -> None:
    config = finished(tmp_path, validations=({"loss": float("nan")}, {"loss": float("inf")}))
    with pytest.raises(UserError, match=r"no loss.*has diverged"):
        watch(swept(seed="1"), "all", config, lambda: None)
    assert watch(swept(seed="2", searching=False), "all", config, lambda: None) is None
    assert [(each["result"], "has diverged" in each["error"]) for each in records(tmp_path)] == 2 * [(None, True)]
    unvalidated = finished(tmp_path / "other", validations=())
    with pytest.raises(UserError, match=r"lower training\.valid_every"):
        watch(swept(seed="3"), "all", unvalidated, lambda: None)


def test_a_failed_run_is_recorded_and_raised(tmp_path: Path) -> None:
    def fail() -> None:
        raise UserError("no data here")

    with pytest.raises(UserError, match="no data here"):
        watch(swept(model__dropout="0.1"), "all", finished(tmp_path), fail)
    (record,) = records(tmp_path)
    assert (record["error"], record["result"]) == ("no data here", None)
    assert record["values"] == {"model.dropout": "0.1"}


def test_a_failed_command_that_does_not_train_leaves_the_record_of_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Config) -> None:
        raise UserError("out of order")

    def train(config: Config) -> None:
        finished(tmp_path, f"name={config.name}")

    words = ["-m", "experiment=demo", f"paths.outputs={tmp_path}", "model.dropout=0.1,0.2"]
    monkeypatch.setattr(import_module("nmt.commands.train"), "run", train)
    monkeypatch.setattr(import_module("nmt.commands.evaluate"), "run", fail)
    assert main(["train", *words]) == 0
    assert main(["eval", *words]) == 2
    found = [(each["number"], each["run"], each["values"], each["result"], each["error"]) for each in records(tmp_path)]
    assert found == [
        (number, f"demo-model.dropout_{value}", {"model.dropout": value}, 2.0, "")
        for number, value in enumerate(("0.1", "0.2"))
    ]
