"""Checks and metadata that all groups of settings share."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from nmt.errors import ConfigError, nearest

ADJUSTABLE = {"adjustable": True}
"""Metadata of a setting, or a group, that may change when a run is resumed: at each step the weights are the same, but
for rounding."""

NOT_OF_THE_TEXT = {"not_of_the_text": True}
"""Metadata of a setting under `data.` on which the text and its tokens do not depend."""
OF_ONE_CORPUS = {"of_one_corpus": True}
"""Metadata of a setting under `data.` that other corpora do not take from the main one."""

ONLY_TORCH = {"only_torch": True}
"""Metadata of a setting under `decoding.` that only engine=torch offers, if it has another value than its default."""
CONTROL = {"control": True}
"""Metadata of a setting under `decoding.` that restricts what a search may write."""

NOT_OF_THE_SEARCH = {"not_of_the_search": True}
"""Metadata of a setting under `decoding.` that does not change what the search finds with a model, or that names the
model."""
ONLY_IN_TRAINING = {"only_in_training": True}
"""Metadata of a setting under `model.` that changes nothing that a trained model computes."""
DROPS = {**ONLY_IN_TRAINING, "drops": True}
"""Metadata of a setting under `model.` that is the probability with which training leaves out parts of the model."""
SEEN_IN_WEIGHTS = {"seen_in_weights": True}
"""Metadata of a setting under `model.` whose difference shows in the names or shapes of weights."""
NAMES_A_FILE = {"names_a_file": True}
"""Metadata of a setting that names a file, on whose content the result depends."""
MAY_NAME_A_FOLDER = {"may_name_a_folder": True}
"""Metadata of a setting that names a folder, or something known by its name; models from strangers may not set it."""

MAX_NAME_CHARACTERS = 64
"""The longest name of a folder that a setting may give."""


EFFECTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "decoding.beam": ("strategy", ("beam",)),
    "decoding.temperature": ("strategy", ("sample", "mbr")),
    "decoding.top_k": ("strategy", ("sample", "mbr")),
    "decoding.top_p": ("strategy", ("sample", "mbr")),
    "decoding.candidates": ("strategy", ("mbr",)),
    "decoding.utility": ("strategy", ("mbr",)),
    "model.max_positions": ("positions", ("learned",)),
    "model.max_relative_distance": ("positions", ("relative",)),
    "training.muon_rate": ("optimizer", ("muon",)),
}
"""The setting of the same group, and its values, without which a setting has no effect."""


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


def marked(settings: Any, metadata: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the settings of a group, or of its class, that have all of this metadata."""
    return tuple(each.name for each in fields(settings) if metadata.keys() <= each.metadata.keys())


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


def typed(key: str, value: Any, kind: Any) -> Any:
    """Return a value if it has the type of its setting; whole numbers are numbers, too."""
    match value:
        case bool() | None:
            fits = kind in ((bool | None,) if value is None else (bool, bool | None))
        case int() if kind is float:
            return float(value)
        case list():
            fits = kind == list[str] and all(type(each) in (str, int, float) for each in value)
            value = [str(each) for each in value]
        case dict():
            fits = kind == dict[str, Any]
        case _:
            fits = type(value) is kind
    if not fits:
        raise ConfigError(f"{key} must be {IN_WORDS[kind]}, not {value!r}")
    return value


def check_choice(key: str, value: str, choices: Iterable[str]) -> None:
    """Make sure that a value is one of the choices."""
    choices = tuple(choices)
    if value not in choices:
        raise ConfigError(f"{key}={value} is not one of {', '.join(choices)}; {nearest(value, choices)}")


def check_at_least(key: str, value: float, minimum: float) -> None:
    """Make sure that a number is at least the minimum, and small enough for 64 bits."""
    if not value >= minimum:
        raise ConfigError(f"{key}={value} must be at least {minimum}")
    if value == math.inf:
        raise ConfigError(f"{key}={value} must be a finite number")
    if isinstance(value, int) and value >= 2**63:  # libraries count in 64-bit integers
        raise ConfigError(f"{key}={value} must be below 2^63")


def check_above_zero(key: str, value: float) -> None:
    """Make sure that a number is above 0 and finite."""
    if not 0 < value < math.inf:
        raise ConfigError(f"{key}={value} must be above 0{' and finite' if value == math.inf else ''}")


def check_between(key: str, value: float, minimum: float, maximum: float) -> None:
    """Make sure that a number is within both limits."""
    if not minimum <= value <= maximum:
        raise ConfigError(f"{key}={value} must be at least {minimum} and at most {maximum}")


def check_fraction(key: str, value: float) -> None:
    """Make sure that a number is at least 0 and below 1."""
    if not 0 <= value < 1:
        raise ConfigError(f"{key}={value} must be at least 0 and below 1")


def check_plain_name(key: str, value: str) -> None:
    """Refuse a name that leads to another folder, or that a file system or terminal cannot show."""
    if not _is_plain(value):
        raise ConfigError(
            f"{key}={value} must be the plain name of a folder, of at most {MAX_NAME_CHARACTERS} characters"
        )


def _is_plain(name: str) -> bool:
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and "\\" not in name
        and name.isprintable()
        and len(name) <= MAX_NAME_CHARACTERS
    )


def check_language(key: str, value: str) -> None:
    """Make sure that a text is a language code that file names may contain."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ConfigError(f"{key}={value} must be a language code, such as en or pt-BR: file names contain it")


def check_plain_path(key: str, value: str) -> None:
    """Refuse a relative path unless each of its components is a plain name."""
    if not all(map(_is_plain, value.split("/"))):
        raise ConfigError(
            f"{key}={value} must be one or more plain names of folders, joined by /, each of at most "
            f"{MAX_NAME_CHARACTERS} characters"
        )


def is_utf8(text: str) -> bool:
    """Return whether a text can be written to a file; bytes from the command line that are not UTF-8 cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
