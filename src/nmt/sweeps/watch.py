"""Do a run of a sweep, record its result in outputs/sweeps/<name>/<values>.json, and return it to the search."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

from nmt.config.commands import FIGURES
from nmt.config.jobs import Swept
from nmt.config.keys import settings_name
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError
from nmt.evaluation.record import read_evaluation
from nmt.launched import is_main_process
from nmt.runs.layout import RunLayout, scores_file
from nmt.runs.scores import scores_folder
from nmt.runs.tracker import MetricsEvent, read_metrics
from nmt.storage.files import write_json


def watch(swept: Swept, command: str, config: Config, train: Callable[[], None]) -> float | None:
    """Do a run, and return its result: the metric that `sweep.metric` names, or None if it has none."""
    if swept.searching:
        _check_metric(config, command)
    try:
        train()
        result = read_result(config)
        reason = _missing(config) if result is None else ""
        if reason and swept.searching:
            raise UserError(reason)
    except Exception as error:
        _record(swept, config, result=None, error=(str(error).strip().splitlines() or [type(error).__name__])[-1])
        raise
    _record(swept, config, run=config.name, metric=config.sweep.metric, result=result, error=reason)
    return result


def _check_metric(config: Config, command: str) -> None:
    """Refuse to search for a score that no run has when it ends."""
    metric, splits = config.sweep.metric, config.evaluation.splits
    if metric in FIGURES:
        return
    if command == "train":
        raise ConfigError(f"sweep.metric={metric} is a score, which `nmt train` does not compute: use `nmt all`")
    if metric.partition(".")[0] not in splits:
        raise ConfigError(f"sweep.metric={metric} is a score of none of evaluation.splits=[{','.join(splits)}]")


def _record(swept: Swept, config: Config, **found: object) -> None:
    """Write the result or error of a run on the main process, if the run has values of its own."""
    if swept.values and is_main_process():
        record = {"sweep": swept.base, "number": swept.number, "values": dict(swept.values), **found}
        write_json(config.runs_folder / "sweeps" / swept.base / f"{settings_name(swept.values)}.json", record)


def read_result(config: Config) -> float | None:
    """Return the metric of a finished run that its settings name; None if the run does not have it."""
    metric, layout = config.sweep.metric, RunLayout(config.run_folder)
    if metric in FIGURES:
        best = _best_validation(layout.metrics)
        return best.number(metric) if best else None
    split, _, name = metric.partition(".")
    file = scores_file(scores_folder(config), split)
    if not file.exists():
        return None
    scores = read_evaluation(file).scores
    return scores[name].score if name in scores else None


def _best_validation(metrics: Path) -> MetricsEvent | None:
    """Return the validation that training calls the best: of equal ones, the first."""
    found = [(value, each) for each in _validations(metrics) if (value := each.number("loss")) is not None]
    return min(found, key=itemgetter(0))[1] if found else None


def _validations(metrics: Path) -> list[MetricsEvent]:
    return [each for each in read_metrics(metrics) if each.event == "valid"] if metrics.exists() else []


def _missing(config: Config) -> str:
    """Return why a run has no result."""
    metric = config.sweep.metric
    if metric not in FIGURES:
        reason = "`nmt eval` does not compute it"
    elif _validations(RunLayout(config.run_folder).metrics):
        reason = "that of no validation is finite, so the run has diverged"
    else:
        reason = "lower training.valid_every"
    return f"the run {config.name} has no {metric}, which sweep.metric names: {reason}"
