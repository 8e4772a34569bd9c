"""Begin a run from the weights of another model, with another vocabulary if need be."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from nmt.config.saved import from_yaml
from nmt.config.schema import Config, ModelConfig
from nmt.errors import UserError
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoints import Checkpoint
from nmt.text.extend_tokenizer import compositions
from nmt.text.tokenizer import Tokenizer

MAY_DIFFER = ("dropout", "initialization")
"""Settings of the model that change nothing that a trained model computes."""
SEEN_IN_WEIGHTS = (
    *("layers", "encoder_layers", "decoder_layers", "d_model", "d_ff", "max_positions", "max_relative_distance"),
    *("tie_embeddings", "output_bias"),
)
"""Settings of the model whose difference shows in the names or shapes of weights."""
VOCABULARIES = {"shared": 1, "source": 0, "target": 1, "projection": 1, "bias": 1}
"""The parameters with a row per word, and the side of their vocabulary: 0 is the source, 1 the target."""
NAMED_FAULTS = 3
"""Faults that an error names; it counts the others."""


def begin_from(model: TranslationModel, tokenizer: Tokenizer, origin: Checkpoint, config: Config) -> str:
    """Give a new model the weights of a checkpoint, and word vectors for the vocabulary of the prepared data.

    Returns:
        A line about what was taken, for the user.
    """
    initial = model.state_dict()
    weights, words = _for_vocabulary(origin, tokenizer, initial, config)
    skipped = Skipped(config.training.init_skip)
    faults = _different_settings(origin, config.model, skipped) + _unfit(initial, weights, skipped)
    skipped.check_used(origin)
    taken = {name: weight for name, weight in weights.items() if name in initial and not skipped.matches(name)}
    if faults:
        raise UserError(_refusal(origin, config.model, faults))
    if not taken:
        raise UserError("training.init_skip leaves out every weight: skip fewer, or remove training.init_from")
    model.load_state_dict({**initial, **taken})
    left_out = sum(name not in taken for name in initial)
    return f"beginning from {origin.path}, step {origin.step}: {len(taken)} weights, {left_out} left out{words}"


class Skipped:
    """The names in training.init_skip."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._unused = dict.fromkeys(patterns)
        self.patterns = patterns

    def matches(self, name: str) -> bool:
        """Return whether a name is to be left out."""
        found = [pattern for pattern in self.patterns if fnmatchcase(name, pattern)]
        for pattern in found:
            self._unused.pop(pattern, None)
        return bool(found)

    def check_used(self, origin: Checkpoint) -> None:
        """Refuse a pattern that has matched nothing."""
        for pattern in self._unused:
            raise UserError(
                f"training.init_skip: {pattern} is no weight of this model or of {origin.path}, and no setting in "
                "which they differ: correct or remove it"
            )


def _different_settings(origin: Checkpoint, model: ModelConfig, skipped: Skipped) -> list[str]:
    """Return the settings that would make the same weights another function."""
    before, now = asdict(from_yaml(origin.config_text).model), asdict(model)
    return [
        f"model.{key} is {now[key]}, not {before[key]}"
        for key in now
        if key not in (*MAY_DIFFER, *SEEN_IN_WEIGHTS)
        and before[key] != now[key]
        and not skipped.matches(f"model.{key}")
    ]


def _unfit(initial: Mapping[str, Tensor], weights: Mapping[str, Tensor], skipped: Skipped) -> list[str]:
    """Return what is wrong with each weight that does not fit and is not to be left out."""
    faults = []
    for name in {**initial, **weights}:
        if skipped.matches(name):
            continue
        if name not in weights:
            faults.append(f"{name} is missing")
        elif name not in initial:
            faults.append(f"{name} is not in this model")
        elif weights[name].shape != initial[name].shape:
            faults.append(f"{name} is {list(weights[name].shape)}, not {list(initial[name].shape)}")
    return faults


def _refusal(origin: Checkpoint, model: ModelConfig, faults: Sequence[str]) -> str:
    shown = "; ".join(faults[:NAMED_FAULTS])
    more = f"; and {len(faults) - NAMED_FAULTS} more" if len(faults) > NAMED_FAULTS else ""
    before, now = asdict(from_yaml(origin.config_text).model), asdict(model)
    settings = " ".join(
        f"model.{key}={_written(before[key])}" for key in now if key not in MAY_DIFFER and before[key] != now[key]
    )
    remedy = f"set {settings}" if settings else "name another model"
    return f"{origin.path} does not fit this model: {shown}{more}: {remedy}, or leave them out with training.init_skip"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _for_vocabulary(
    origin: Checkpoint, tokenizer: Tokenizer, initial: Mapping[str, Tensor], config: Config
) -> tuple[dict[str, Tensor], str]:
    """Return the weights of the origin with word vectors for the vocabulary of the data, and what was done."""
    old, weights = Tokenizer.load(origin.tokenizer_folder), dict(origin.weights)
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
