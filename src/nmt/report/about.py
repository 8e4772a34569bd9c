"""Describe a run: recipe, machine, scores and settings."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from itertools import chain
from typing import NamedTuple

from nmt.compute.machine import PRECISIONS
from nmt.config.model import DECODER_ONLY
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.evaluation.metrics import TITLES, Score
from nmt.evaluation.paper import paper_score
from nmt.evaluation.record import EvaluationRecord
from nmt.report.run import Run
from nmt.runs.environment import Environment

UNCOMPARED = (
    "name", "checkpoint", "input", "output", "compare", "paths", "describe", "translate", "training.log_every", "sweep",
    "tracking",
)  # fmt: skip
"""Settings and groups of settings that a comparison of runs leaves out, because they do not change the model."""


class ReportedScore(NamedTuple):
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
        every = dict(record.scores)
        if record.perplexity is not None:
            every["perplexity"] = Score(record.perplexity, "of the references, per word piece")
        for name, score in every.items():
            theirs = paper_score(name, run.config, path.rpartition("/")[2])
            title = TITLES.get(name, name.capitalize())
            found.append(ReportedScore(path, title, score.score, theirs, score.signature))
    return found


def recipe(config: Config) -> str:
    """Return model and training in one line."""
    model, training = config.model, config.training
    depth = str(model.decoder_depth)  # a decoder alone, or "6 + 6" for the paper's base model
    if model.architecture != DECODER_ONLY:
        depth = f"{model.encoder_depth} + {depth}"
    minutes = f" or {training.max_training_minutes:g} minutes" if training.max_training_minutes else ""
    return (
        f"{depth} layers, d_model {model.d_model}, d_ff {model.d_ff}, {model.heads} heads, "
        f"dropout {model.dropout:g}, {model.norm_placement}-norm; {training.steps:,} steps{minutes} "
        f"of {training.batch_tokens:,} tokens per side, warmup {training.warmup_steps:,}, "
        f"label smoothing {training.label_smoothing:g}"
    )


def scored_checkpoint(record: EvaluationRecord) -> str:
    """Return the checkpoint and the search that the scores come from; empty if the record does not name them."""
    checkpoint, decoding = record.checkpoint, record.decoding
    if checkpoint is None or decoding is None:
        return ""
    averaged = f" of {len(checkpoint.averaged_from)}" if checkpoint.averaged_from else ""
    return f"checkpoint {checkpoint.name}{averaged}, step {checkpoint.step:,}; {decoding.in_words}"


def machine(environment: Environment | None) -> str:
    """Return what a run was trained on last: GPUs, or a CPU and its threads."""
    if environment is None:
        return "unknown machine"
    gpus = ", ".join(f"{count} × {device}" for device, count in Counter(environment.devices).items())
    threads = f"{environment.threads} thread{'s' if environment.threads != 1 else ''}"
    name = gpus or f"{environment.cpu or 'unknown machine'}, {threads}"
    # an imported run has none
    return f"{name} in {environment.precision}" if environment.precision in PRECISIONS else name


def differences(configs: Mapping[str, Config]) -> list[tuple[str, list[object]]]:
    """Return the settings in which the configurations differ: the key and the value in each configuration."""
    flat = [flatten(asdict(config)) for config in configs.values()]
    keys = [key for key in dict.fromkeys(chain(*flat)) if not {key, key.partition(".")[0]} & {*UNCOMPARED}]
    values = {key: [each.get(key, "") for each in flat] for key in keys}
    return [(key, found) for key, found in values.items() if any(value != found[0] for value in found[1:])]
