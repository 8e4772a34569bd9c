"""Begin a run from the weights of another model, with another vocabulary if need be, and exclude weights from it."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches

import torch
from torch import Tensor

from nmt.config.keys import written
from nmt.config.model import ONLY_IN_TRAINING
from nmt.config.tree import Config
from nmt.errors import UserError, nearest
from nmt.model.interface import TranslationModel, matches_any, trainable
from nmt.runs.checkpoint import Checkpoint, CheckpointRecord, check_weights, load
from nmt.runs.origin import find_origin
from nmt.text.extend_tokenizer import compositions
from nmt.text.tokenizer import Tokenizer

PARTS: Mapping[str, Sequence[str]] = {
    "encoder": ("encoder.*", "encoder_norm.*"),
    "decoder": ("decoder.*", "decoder_norm.*"),
    "embeddings": ("vectors.*", "*_positions"),
}
"""The patterns of the parameters of each part. Tied embeddings include the projection before the softmax."""
VOCABULARIES = {"shared": 1, "source": 0, "target": 1, "projection": 1, "bias": 1}
"""The parameters with a row per word, and the side of their vocabulary: 0 is the source, 1 the target."""


def load_origin(config: Config) -> Checkpoint | None:
    """Return the model that training.init_from names; None if it names none."""
    return load(find_origin(config)) if config.training.init_from else None


def origin_record(config: Config, checkpoint: Checkpoint | None, origin: Checkpoint | None) -> CheckpointRecord | None:
    """Return the record of the model that a run began from; a resumed run has it in its checkpoint."""
    if checkpoint is not None:
        return checkpoint.meta.origin
    return None if origin is None else replace(CheckpointRecord.of(origin.meta), name=config.training.init_from)


def begin_from(model: TranslationModel, tokenizer: Tokenizer, origin: Checkpoint, config: Config) -> str:
    """Give a new model the weights of a checkpoint, and word vectors for the vocabulary of the prepared data.

    Returns:
        A line about what was taken, for the user.
    """
    before, now = origin.config.model, config.model
    names = [each.name for each in fields(now) if each.name not in ONLY_IN_TRAINING]
    values = {name: getattr(before, name) for name in names if before.meaning(name) != now.meaning(name)}
    if differing := {name: value for name, value in values.items() if value != getattr(now, name)}:
        settings = " ".join(f"model.{name}={written(value)}" for name, value in differing.items())
        raise UserError(f"{origin.path} is another model: set {settings}, or name another one in training.init_from")
    weights, words = _for_vocabulary(origin, tokenizer, model.state_dict(), config)
    check_weights({name: weight.shape for name, weight in model.state_dict().items()}, weights, origin.path)
    model.load_state_dict(weights)
    return f"beginning from {origin.path}, step {origin.step}{words}"


def _for_vocabulary(
    origin: Checkpoint, tokenizer: Tokenizer, initial: Mapping[str, Tensor], config: Config
) -> tuple[dict[str, Tensor], str]:
    """Return the weights of the origin with word vectors for the vocabulary of the data, and what was done."""
    old, weights = Tokenizer.load(origin.path), dict(origin.weights)
    if old.checksum == tokenizer.checksum:
        return weights, ""
    if config.training.init_vocabulary == "old":
        raise UserError(
            f"the data in {config.data_folder} was prepared with another tokenizer than {origin.path}: run `make data` "
            "with the same ARGS, or set training.init_vocabulary to new or extend"
        )
    sides = list(map(compositions, old.contents, tokenizer.contents))
    for use, side in VOCABULARIES.items():
        name = f"vectors.{use}"
        if name in initial and name in weights:
            weights[name] = _means(weights[name], sides[side], initial[name])
    counts = (f"{sum(map(bool, pieces)):,} of {len(pieces):,}" for pieces in (sides[:1] if tokenizer.joint else sides))
    return weights, f"; vectors for {' and '.join(counts)} word pieces"


def _means(old: Tensor, pieces: Sequence[Sequence[int]], initial: Tensor) -> Tensor:
    """Return the mean of the old vectors that each new piece consists of, and the initial vector if there are none."""
    counts = torch.tensor([len(each) for each in pieces])
    rows = torch.repeat_interleave(torch.arange(len(pieces)), counts)
    ids = torch.tensor([index for each in pieces for index in each], dtype=torch.int64)
    sums = torch.zeros(len(pieces), *old.shape[1:], dtype=torch.float64).index_add_(0, rows, old[ids].double())
    counted = counts.clamp(min=1).view(-1, *[1] * (old.dim() - 1))
    means = (sums / counted).to(old.dtype)
    means[counts == 0] = initial[counts == 0].to(means)
    return means


def freeze(model: TranslationModel, names: Sequence[str]) -> None:
    """Let training leave the named parameters as they are: they get neither gradients nor optimizer state.

    Args:
        model: The model.
        names: Parts, or names of parameters, in which * stands for any text.
    """
    parameters = dict(model.named_parameters())
    for name in names:
        chosen = [each for each in parameters if matches_any(each, PARTS.get(name, (name,)))]
        if not chosen:
            hint = nearest(name, [*PARTS, *get_close_matches(name, parameters, n=1)])
            raise UserError(f"training.freeze: {name} is no part and no parameter of this model: {hint}")
        for each in chosen:
            parameters[each].requires_grad_(False)
    if not trainable(model):
        raise UserError(f"training.freeze=[{','.join(names)}] leaves nothing to train: freeze less")
