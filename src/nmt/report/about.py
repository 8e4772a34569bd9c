"""Describe a run: recipe, machine, scores and settings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nmt.config.saved import flatten
from nmt.config.schema import Config
from nmt.estimate.parameters import count_parameters, describe_depth, training_flops
from nmt.evaluation.metrics import title
from nmt.evaluation.record import EvaluationRecord
from nmt.paper.figures import paper_bleu, paper_perplexity
from nmt.report.run import Run

UNINTERESTING = ("name", "checkpoint", "input", "output", "compare", "paths.data", "paths.outputs")
"""Settings that say nothing about how runs differ."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A score."""

    split: str
    name: str
    value: float
    paper: float | None
    signature: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, and its value in the base experiment."""

    key: str
    value: Any
    base: Any

    @property
    def differs(self) -> bool:
        """Whether the run changes it."""
        return bool(self.value != self.base)


def scores(run: Run) -> list[Figure]:
    """Return every score of every split, with the paper's if there is one; scores of other checkpoints come last."""
    figures = []
    for path, record in run.all_scores().items():
        split = path.rpartition("/")[2]
        paper = paper_bleu(run.config, split)
        for name, score in record.scores.items():
            figures.append(
                Figure(path, title(name), score.score, paper if name == "bleu_paper" else None, score.signature)
            )
        if record.perplexity is not None:
            theirs = paper_perplexity(run.config) if split == "valid" else None
            figures.append(Figure(path, "Perplexity", record.perplexity, theirs, "of the references, per word piece"))
    return figures


def recipe(config: Config) -> str:
    """Return model and training in one line."""
    model, training = config.model, config.training
    return (
        f"{describe_depth(model)} layers, d_model {model.d_model}, d_ff {model.d_ff}, {model.heads} heads, "
        f"dropout {model.dropout:g}, {model.norm_placement}-norm; {training.steps:,} steps "
        f"of {training.batch_tokens:,} tokens per side, warmup {training.warmup_steps:,}, "
        f"label smoothing {training.label_smoothing:g}"
    )


def scored(record: EvaluationRecord) -> str:
    """Say which weights were scored, and how they were searched; empty if the record does not say."""
    checkpoint, decoding = record.checkpoint, record.decoding
    if checkpoint is None or decoding is None:
        return ""
    averaged = len(checkpoint.averaged_from)
    name = f"{checkpoint.name} of {averaged}" if averaged else checkpoint.name
    search = f"beam {decoding.beam}, length penalty {decoding.alpha:g}" if decoding.strategy == "beam" else "sampled"
    return f"checkpoint {name}, step {checkpoint.step:,}; {search}"


def operations(count: float) -> str:
    """Return a number of floating-point operations with its unit."""
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9)):
        if count >= size:
            return f"{count / size:.3g} {unit}FLOP"
    return f"{count / 1e6:.3g} MFLOP"


def where(environment: Mapping[str, Any]) -> str:
    """Return a short name of the machine."""
    devices = environment.get("devices") or []
    if devices:
        kinds = {device: devices.count(device) for device in devices}
        return ", ".join(f"{count} × {device}" for device, count in kinds.items())
    threads = environment.get("threads", 1)
    return f"{environment.get('cpu', 'an unknown machine')}, {threads} thread{'s' if threads != 1 else ''}"


def duration(seconds: float) -> str:
    """Return a time with a suitable unit."""
    minutes, hours = seconds / 60, seconds / 3600
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{hours:.1f} h"


def parameters(config: Config, source_vocabulary: int, target_vocabulary: int) -> list[tuple[str, int, float]]:
    """Return name, number and share of the parameters of embedding, encoder and decoder."""
    size = count_parameters(config.model, source_vocabulary, target_vocabulary)
    return [(part, count, count / size.total) for part, count in size._asdict().items()]


def step_flops(config: Config, source_vocabulary: int, target_vocabulary: int) -> int:
    """Return the floating-point operations of a training step."""
    size = count_parameters(config.model, source_vocabulary, target_vocabulary)
    tokens = config.training.batch_tokens
    return training_flops(config.model, size, target_vocabulary * config.model.d_model, tokens, tokens)


def settings(config: Config) -> list[Setting]:
    """Return every setting with its value in the base experiment, the default of the schema."""
    base = flatten(asdict(Config()))
    return [Setting(key, value, base[key]) for key, value in flatten(asdict(config)).items()]


def differences(configs: Mapping[str, Config]) -> list[tuple[str, list[Any]]]:
    """Return the settings in which the configurations differ: the key, and the value in each."""
    flat = [flatten(asdict(config)) for config in configs.values()]
    keys = [key for key in flat[0] if key not in UNINTERESTING]
    return [(key, [each[key] for each in flat]) for key in keys if any(each[key] != flat[0][key] for each in flat[1:])]
