"""The parameters of a model: which of them training changes, and which a pattern names."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from torch import nn

from nmt.model.interface import TranslationModel


def trainable(model: TranslationModel) -> list[nn.Parameter]:
    """Return the parameters that training changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns, in which * stands for any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
