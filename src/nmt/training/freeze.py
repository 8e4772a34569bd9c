"""Exclude parameters from training."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from torch import nn

from nmt.errors import UserError, nearest
from nmt.model.interface import TranslationModel

PARTS: Mapping[str, Sequence[str]] = {
    "encoder": ("encoder.*", "encoder_norm.*"),
    "decoder": ("decoder.*", "decoder_norm.*"),
    "embeddings": ("vectors.*", "*_positions"),
}
"""The patterns of the parameters of each part. Tied embeddings include the projection before the softmax."""


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
            hint = "correct or remove it" if "*" in name else nearest(name, [*PARTS, *parameters])
            raise UserError(f"training.freeze: {name} is no part and no parameter of this model: {hint}")
        for each in chosen:
            parameters[each].requires_grad_(False)
    if not trainable(model):
        raise UserError(f"training.freeze=[{','.join(names)}] leaves nothing to train: freeze less")


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns, in which * stands for any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def trainable(model: TranslationModel) -> list[nn.Parameter]:
    """Return the parameters that training changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
