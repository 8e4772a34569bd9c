"""Describe a run: recipe, machine, scores and settings."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import chain

from nmt.compute.machine import PRECISIONS
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.estimate.parameters import describe_depth
from nmt.evaluation.metrics import TITLES
from nmt.evaluation.paper import paper_score
from nmt.evaluation.record import EvaluationRecord
from nmt.report.run import Run
from nmt.runs.environment import Environment

UNCOMPARED = (
    "name", "checkpoint", "input", "output", "compare", "paths", "describe", "translate", "training.log_every",
)  # fmt: skip
"""Settings and groups of settings that a comparison of runs leaves out, because they do not change the model."""


@dataclass(frozen=True, slots=True)
class ReportedScore:
    """A score of a run, and the paper's if there is one."""

    split: str
    """The path of the scores in eval/, such as test or last/test."""
    name: str
    value: float
    paper: float | None
    signature: str
    """How the score was computed."""


def scores(run: Run) -> list[ReportedScore]:
    """Return every score of every split, with the paper's if there is one; scores of other checkpoints come last."""
    found = []
    for path, record in run.all_scores().items():
        split = path.rpartition("/")[2]
        for name, score in record.scores.items():
            theirs = paper_score(name, run.config, split)
            found.append(ReportedScore(path, TITLES.get(name, name), score.score, theirs, score.signature))
        if record.perplexity is not None:
            theirs = paper_score("perplexity", run.config, split)
            found.append(
                ReportedScore(path, "Perplexity", record.perplexity, theirs, "of the references, per word piece")
            )
    return found


def recipe(config: Config) -> str:
    """Return model and training in one line."""
    model, training = config.model, config.training
    minutes = f" or {training.max_training_minutes:g} minutes" if training.max_training_minutes else ""
    return (
        f"{describe_depth(model)} layers, d_model {model.d_model}, d_ff {model.d_ff}, {model.heads} heads, "
        f"dropout {model.dropout:g}, {model.norm_placement}-norm; {training.steps:,} steps{minutes} "
        f"of {training.batch_tokens:,} tokens per side, warmup {training.warmup_steps:,}, "
        f"label smoothing {training.label_smoothing:g}"
    )


def origin(environment: Environment | None) -> str:
    """Return the model that a run began from; empty if it began with random weights."""
    return environment.origin.summary if environment and environment.origin else ""


def scored_checkpoint(record: EvaluationRecord) -> str:
    """Return the checkpoint and the search that the scores come from; empty if the record does not name them."""
    checkpoint, decoding = record.checkpoint, record.decoding
    if checkpoint is None or decoding is None:
        return ""
    averaged = len(checkpoint.averaged_from)
    name = f"{checkpoint.name} of {averaged}" if averaged else checkpoint.name
    return f"checkpoint {name}, step {checkpoint.step:,}; {decoding.in_words}"


def machine(environment: Environment | None) -> str:
    """Return the machines that a run was trained on, one after the other."""
    if environment is None:
        return "unknown machine"
    return ", then ".join(dict.fromkeys(map(_machine, [*environment.earlier, environment])))


def _machine(environment: Environment) -> str:
    """Return GPUs, or a CPU and the number of threads; and the precision."""
    if environment.devices:
        name = ", ".join(f"{count} × {device}" for device, count in Counter(environment.devices).items())
    else:
        threads = environment.threads
        name = f"{environment.cpu or 'unknown machine'}, {threads} thread{'s' if threads != 1 else ''}"
    known = environment.precision in PRECISIONS  # an imported run has "auto"
    return f"{name} in {environment.precision}" if known else name


def duration(seconds: float) -> str:
    """Return a time with a suitable unit."""
    minutes, hours = seconds / 60, seconds / 3600
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{hours:.1f} h"


def differences(configs: Mapping[str, Config]) -> list[tuple[str, list[object]]]:
    """Return the settings in which the configurations differ: the key and the value in each configuration."""
    flat = [flatten(asdict(config)) for config in configs.values()]
    left_out = {*UNCOMPARED, "sweep", "tracking"}
    keys = [key for key in dict.fromkeys(chain(*flat)) if left_out.isdisjoint((key, key.partition(".")[0]))]
    values = {key: [each.get(key, "") for each in flat] for key in keys}
    return [(key, found) for key, found in values.items() if any(value != found[0] for value in found[1:])]
