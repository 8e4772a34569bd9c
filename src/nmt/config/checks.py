"""The base of all groups of settings, which checks each value by the annotation of its field."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from operator import ge, gt, le, lt
from typing import Annotated, Any, get_origin

from nmt.config.registry import CHOICES, check_registered
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
EFFECTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "decoding.beam": ("strategy", ("beam",)),
    "decoding.temperature": ("strategy", ("sample", "mbr")),
    "decoding.top_k": ("strategy", ("sample", "mbr")),
    "decoding.top_p": ("strategy", ("sample", "mbr")),
    "decoding.candidates": ("strategy", ("mbr",)),
    "decoding.utility": ("strategy", ("mbr",)),
    "model.max_positions": ("positions", ("learned",)),
    "training.muon_rate": ("optimizer", ("muon",)),
}
"""The setting of the same group, and its values, without which a setting has no effect."""
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
        self.check()

    def check(self) -> None:
        """Refuse values that contradict each other."""


def base_type(annotation: Any) -> Any:
    """Return the type of a setting's values."""
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation


def checked(key: str, value: Any, annotation: Any) -> Any:
    """Return the value of a setting if it fits its annotation; whole numbers are numbers, too."""
    kind = base_type(annotation)
    if is_dataclass(kind):
        return value
    match value:
        case bool() | None:
            fits = kind in ((bool | None,) if value is None else (bool, bool | None))
        case int() if kind is float:
            fits, value = True, float(value)
        case list():
            fits = kind == list[str] and all(type(each) in (str, int, float) for each in value)
            value = [str(each) for each in value]
        case dict():
            fits = kind == dict[str, Any]
        case _:
            fits = type(value) is kind
    if not fits:
        raise ConfigError(f"{key} must be {IN_WORDS[kind]}, not {value!r}")
    for check in getattr(annotation, "__metadata__", ()):
        check(key, value)
    if kind is float and not math.isfinite(value):
        raise ConfigError(f"{key}={value} must be a finite number")
    if kind is int and value >= 2**63:  # libraries count in 64-bit integers
        raise ConfigError(f"{key}={value} must be below 2^63")
    if key in CHOICES:
        check_registered(key, value)
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
    if not _is_plain(value):
        raise ConfigError(
            f"{key}={value} must be the plain name of a folder, of at most {MAX_NAME_CHARACTERS} characters"
        )


def check_plain_path(key: str, value: str) -> None:
    """Refuse a relative path unless each of its components is a plain name."""
    if not all(map(_is_plain, value.split("/"))):
        raise ConfigError(
            f"{key}={value} must be one or more plain names of folders, joined by /, each of at most "
            f"{MAX_NAME_CHARACTERS} characters"
        )


def _is_plain(name: str) -> bool:
    return (
        name not in ("", ".", "..")
        and not {*"/\\"} & {*name}
        and name.isprintable()
        and len(name) <= MAX_NAME_CHARACTERS
    )


def check_language(key: str, value: str) -> None:
    """Make sure that a text is a language code that file names may contain."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ConfigError(f"{key}={value} must be a language code, such as en or pt-BR: file names contain it")


Count = Annotated[int, within(at_least=0)]
Positive = Annotated[int, within(at_least=1)]
Amount = Annotated[float, within(at_least=0)]
AboveZero = Annotated[float, within(above=0)]
Share = Annotated[float, within(at_least=0, below=1)]


def has_effect(group: str, settings: Any, name: str) -> bool:
    """Return whether a setting of a group has an effect, as far as the value of another one decides that."""
    other, values = EFFECTS.get(f"{group}.{name}", ("", ()))
    return not other or getattr(settings, other) in values


def check_effect(group: str, settings: Any, name: str) -> None:
    """Refuse a setting of a group with another value than its default, but without effect because of another one."""
    if has_effect(group, settings, name) or getattr(settings, name) == getattr(type(settings)(), name):
        return
    other, values = EFFECTS[f"{group}.{name}"]
    needed = " or ".join(f"{group}.{other}={value}" for value in values)
    raise ConfigError(
        f"{group}.{name} has no effect with {group}.{other}={getattr(settings, other)}: leave it out, or set {needed}"
    )
