"""Begin a run from the weights of another model, with another vocabulary if need be."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor

from nmt.config.checks import ONLY_IN_TRAINING, SEEN_IN_WEIGHTS, marked
from nmt.config.keys import written
from nmt.config.model import ModelConfig
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.model.interface import TranslationModel
from nmt.model.parameters import matches_any
from nmt.runs.checkpoint import Checkpoint, CheckpointRecord, load
from nmt.runs.layout import WEIGHTS
from nmt.runs.origin import find_origin
from nmt.text.extend_tokenizer import compositions
from nmt.text.tokenizer import Tokenizer

VOCABULARIES = {"shared": 1, "source": 0, "target": 1, "projection": 1, "bias": 1}
"""The parameters with a row per word, and the side of their vocabulary: 0 is the source, 1 the target."""
NAMED_FAULTS = 3
"""Faults that an error names; it counts the others."""

Differences = Mapping[str, tuple[Any, Any]]
"""Settings that differ, each with its value in the origin and in this model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The weights that a new run begins with, and where they come from."""

    checksum: str
    """The checksum of the weights, which must be the same in all processes."""
    record: CheckpointRecord
    """Where the weights come from: the `origin` of each checkpoint of the run."""
    give_weights: Callable[[TranslationModel, Tokenizer], str]
    """Give a new model the weights, with word vectors for the run's tokenizer; return a line for the user."""


def find_beginning(config: Config) -> Beginning | None:
    """Return the weights of the model that training.init_from names; None if it names none."""
    name = config.training.init_from
    if not name:
        return None
    origin = load(find_origin(config))

    def give_weights(model: TranslationModel, tokenizer: Tokenizer) -> str:
        return begin_from(model, tokenizer, origin, config)

    record = replace(CheckpointRecord.of(origin.meta), name=name)
    return Beginning(checksum=origin.meta.files[WEIGHTS], record=record, give_weights=give_weights)


def origin_record(checkpoint: Checkpoint | None, beginning: Beginning | None) -> CheckpointRecord | None:
    """Return the record of the model that a run began from; a resumed run has it in its checkpoint."""
    if checkpoint is not None:
        return checkpoint.meta.origin
    return None if beginning is None else beginning.record


def begin_from(model: TranslationModel, tokenizer: Tokenizer, origin: Checkpoint, config: Config) -> str:
    """Give a new model the weights of a checkpoint, and word vectors for the vocabulary of the prepared data.

    Returns:
        A line about what was taken, for the user.
    """
    initial, skip = model.state_dict(), config.training.init_skip
    weights, words = _for_vocabulary(origin, tokenizer, initial, config)
    differences = _differences(origin, config.model)
    faults = {**_different_functions(differences), **_unfit(initial, weights)}
    _check_patterns(skip, {*initial, *weights, *faults}, origin)
    refused = [fault for name, fault in faults.items() if not matches_any(name, skip)]
    if refused:
        raise UserError(_refusal(origin, differences, refused))
    taken = {name: weight for name, weight in weights.items() if name in initial and not matches_any(name, skip)}
    if not taken:
        raise UserError("training.init_skip leaves out every weight: skip fewer, or remove training.init_from")
    model.load_state_dict({**initial, **taken})
    left_out = sum(name not in taken for name in initial)
    return f"beginning from {origin.path}, step {origin.step}: {len(taken)} weights, {left_out} left out{words}"


def _check_patterns(patterns: Iterable[str], names: Iterable[str], origin: Checkpoint) -> None:
    """Refuse a pattern of training.init_skip that matches none of these names."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UserError(
                f"training.init_skip: {pattern} is no weight of this model or of {origin.path}, and no setting in "
                "which they differ: correct or remove it"
            )


def _differences(origin: Checkpoint, model: ModelConfig) -> Differences:
    """Return the values in the origin and in this model of each setting in which they may not differ, but do."""
    before = from_yaml(origin.config_text).model
    names = [each.name for each in fields(model) if each.name not in marked(model, ONLY_IN_TRAINING)]
    values = {name: (getattr(before, name), getattr(model, name)) for name in names}
    return {
        f"model.{name}": (old, new)
        for name, (old, new) in values.items()
        if old != new and before.meaning(name) != model.meaning(name)
    }


def _different_functions(differences: Differences) -> dict[str, str]:
    """Return the differences, by setting, with which the same weights would compute something else."""
    seen = {f"model.{key}" for key in marked(ModelConfig, SEEN_IN_WEIGHTS)}
    return {key: f"{key} is {now}, not {before}" for key, (before, now) in differences.items() if key not in seen}


def _unfit(initial: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Return what is wrong with each weight that does not fit, by its name."""
    faults = {}
    for name in {**initial, **weights}:
        if name not in weights:
            faults[name] = f"{name} is missing"
        elif name not in initial:
            faults[name] = f"{name} is not in this model"
        elif weights[name].shape != initial[name].shape:
            faults[name] = f"{name} is {list(weights[name].shape)}, not {list(initial[name].shape)}"
    return faults


def _refusal(origin: Checkpoint, differences: Differences, faults: Sequence[str]) -> str:
    shown = "; ".join(faults[:NAMED_FAULTS])
    more = f"; and {len(faults) - NAMED_FAULTS} more" if len(faults) > NAMED_FAULTS else ""
    settings = " ".join(f"{key}={written(before)}" for key, (before, _) in differences.items())
    remedy = f"set {settings}" if settings else "name another model"
    return f"{origin.path} does not fit this model: {shown}{more}: {remedy}, or leave them out with training.init_skip"


def _for_vocabulary(
    origin: Checkpoint, tokenizer: Tokenizer, initial: Mapping[str, Tensor], config: Config
) -> tuple[dict[str, Tensor], str]:
    """Return the weights of the origin with word vectors for the vocabulary of the data, and what was done."""
    old, weights = origin.tokenizer(), dict(origin.weights)
    if old.checksum == tokenizer.checksum:
        return weights, ""
    if config.training.init_vocabulary == "old":
        raise UserError(
            f"the data in {config.data_folder} was prepared with another tokenizer than {origin.path}: run `make data` "
            "with the same ARGS, or set training.init_vocabulary to new or extend"
        )
    sides = [
        compositions(before, after, str(origin.path))
        for before, after in zip(old.contents, tokenizer.contents, strict=True)
    ]
    sizes = (old.source_size, old.target_size)
    for use, side in VOCABULARIES.items():
        name = f"vectors.{use}"
        if name in initial and name in weights:
            if len(weights[name]) != sizes[side]:
                raise UserError(
                    f"{origin.path} has {len(weights[name])} vectors for {sizes[side]} word pieces: restore it"
                )
            weights[name] = _means(weights[name], sides[side], initial[name])
    return weights, _about_words(sides, tokenizer)


def _means(old: Tensor, pieces: Sequence[Sequence[int]], initial: Tensor) -> Tensor:
    """Return the mean of the old vectors that each new piece consists of, and the initial vector if there are none."""
    counts = torch.tensor([len(each) for each in pieces])
    rows = torch.repeat_interleave(torch.arange(len(pieces)), counts)
    ids = torch.tensor([index for each in pieces for index in each], dtype=torch.int64)
    sums = torch.zeros(len(pieces), *old.shape[1:], dtype=torch.float64).index_add_(0, rows, old[ids].double())
    counted = counts.clamp(min=1).view(-1, *[1] * (old.dim() - 1))
    means = (sums / counted).to(old.dtype)
    if initial.shape == means.shape:  # any other shape will be refused by name
        means[counts == 0] = initial[counts == 0].to(means)
    return means


def _about_words(sides: Sequence[Sequence[Sequence[int]]], tokenizer: Tokenizer) -> str:
    """Say how many word pieces have vectors that are made from old ones."""
    counts = (f"{sum(map(bool, pieces)):,} of {len(pieces):,}" for pieces in (sides[:1] if tokenizer.joint else sides))
    return f"; vectors for {' and '.join(counts)} word pieces"
