"""The base of all groups of settings, which checks each value by the annotation of its field."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from operator import ge, gt, le, lt
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from nmt.config.registry import CHOICES
from nmt.errors import ConfigError, nearest

ADJUSTABLE = {"adjustable": True}
"""Metadata of a setting, or a group, that may change when a run is resumed: at each step the weights are the same, but
for rounding."""
MAX_NAME_CHARACTERS = 64
"""The longest name of a folder that a setting may give."""
IN_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    bool | None: "true, false or null",
    str: "text",
    list[str]: "a list, such as [a,b]",
    dict[str, Any]: "settings by name",
}
"""Types of settings in words."""
_HOLDS = {"at least": ge, "above": gt, "at most": le, "below": lt}


@dataclass(frozen=True)
class Group:
    """A group of settings: `TrainingConfig` has those that begin with `training.`, and `Config` those without a dot."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check each value, and then the values against each other."""
        group = type(self).__name__.removesuffix("Config").lower()
        for each in fields(self):
            key = f"{group}.{each.name}" if group else each.name
            object.__setattr__(self, each.name, checked(key, getattr(self, each.name), each.type))
        self._check()

    def _check(self) -> None:
        """Refuse values that contradict each other."""


def base_type(annotation: Any) -> Any:
    """Return the type of a setting's values."""
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation


def checked(key: str, value: Any, annotation: Any) -> Any:
    """Return the value of a setting if it fits its annotation; whole numbers are numbers, and numbers are text, too."""
    kind = base_type(annotation)
    if is_dataclass(kind):
        return value
    if type(value) is int and kind in (int, float) and abs(value) >= 2**63:  # libraries count in 64-bit integers
        raise ConfigError(f"{key}={value} must be between -2^63 and 2^63")
    if type(value) in (int, float) and kind in (float, str):
        value = kind(value)
    elif isinstance(value, list):
        value = [str(each) if type(each) in (int, float) else each for each in value]
    types = get_args(kind) if isinstance(kind, UnionType) else (get_origin(kind) or kind,)
    if type(value) not in types or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise ConfigError(f"{key} must be {IN_WORDS[kind]}, not {value!r}")
    for check in getattr(annotation, "__metadata__", ()):
        check(key, value)
    if kind is float and not math.isfinite(value):
        raise ConfigError(f"{key}={value} must be a finite number")
    if key in CHOICES and ":" not in value:
        one_of(*CHOICES[key])(key, value)
    return value


def within(**limits: float) -> Callable[[str, float], None]:
    """Return a check of a number, such as that of `at_least=0, below=1`."""
    limit = {words.replace("_", " "): bound for words, bound in limits.items()}

    def check(key: str, value: float) -> None:
        if not all(_HOLDS[words](value, bound) for words, bound in limit.items()):
            needed = " and ".join(f"{words} {bound}" for words, bound in limit.items())
            raise ConfigError(f"{key}={value} must be {needed}")

    return check


def one_of(*choices: str) -> Callable[[str, str], None]:
    """Return a check of a text that is one of these."""

    def check(key: str, value: str) -> None:
        if value not in choices:
            known = [each for each in choices if each]
            raise ConfigError(f"{key}={value} is not one of {', '.join(known)}; {nearest(value, known)}")

    return check


def check_plain_name(key: str, value: str) -> None:
    """Refuse a name that leads to another folder, or that a file system or terminal cannot show."""
    fits = value not in ("", ".", "..") and not {*"/\\"} & {*value} and value.isprintable()
    if not fits or len(value) > MAX_NAME_CHARACTERS:
        raise ConfigError(
            f"{key}={value} must be the plain name of a folder, of at most {MAX_NAME_CHARACTERS} characters"
        )


def check_plain_path(key: str, value: str) -> None:
    """Refuse a relative path unless each of its components is a plain name."""
    for name in value.split("/"):
        check_plain_name(key, name)


def check_language(key: str, value: str) -> None:
    """Make sure that a text is a language code that file names may contain."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ConfigError(f"{key}={value} must be a language code, such as en or pt-BR: file names contain it")


Count = Annotated[int, within(at_least=0)]
Positive = Annotated[int, within(at_least=1)]
Amount = Annotated[float, within(at_least=0)]
AboveZero = Annotated[float, within(above=0)]
Share = Annotated[float, within(at_least=0, below=1)]
