"""The dotted keys of all settings, read from the fields of the schema and the docstrings under them."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache, reduce
from hashlib import sha256
from itertools import pairwise
from typing import Any

from nmt.config import registry
from nmt.config.checks import ADJUSTABLE, MAX_NAME_CHARACTERS, base_type
from nmt.config.tree import Config

ELSEWHERE = {
    "batch_size": "training.batch_tokens",
    "beam_size": "decoding.beam",
    "epochs": "training.steps",
    "hidden_size": "model.d_model",
    "length_penalty": "decoding.alpha",
    "lr": "training.learning_rate",
    "max_length": "data.max_pieces",
}
"""What other toolkits call settings, where the nearest name does not tell."""
EXPERIMENT = "experiment"
"""The group whose files may set any setting."""
_DIGEST_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    type: str
    """The type of its values, as the help names it."""
    default: Any
    meaning: str
    adjustable: bool
    """True if the setting may change when a run is resumed."""


@cache
def all_keys() -> dict[str, Key]:
    """Return every setting by its dotted name, in the order of the tree."""
    return {key.name: key for key in _walk(Config(), "", adjustable=False)}


def group_names() -> list[str]:
    """Return the names of the groups of settings, in the order of the tree, after `experiment`."""
    return [EXPERIMENT, *(each.name for each in fields(Config) if is_dataclass(each.type))]


def value_of(config: Config, name: str) -> Any:
    """Return the value of a setting by its dotted name."""
    return reduce(getattr, name.split("."), config)


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return settings with other values for some, by their dotted names; check them like all settings.

    A group changes at once: settings are checked against each other, so one of several may not fit without others.
    """
    changes: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        changes.setdefault(group, {})[name] = value
    groups = {group: replace(getattr(config, group), **inner) for group, inner in changes.items() if group}
    return replace(config, **groups, **changes.get("", {}))


def written(value: object) -> str:
    """Return a value as it is written on the command line."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list():
            return f"[{','.join(map(str, value))}]"
        case _:
            return str(value)


def settings_name(values: Mapping[str, object], limit: int = MAX_NAME_CHARACTERS) -> str:
    """Return settings as a plain name such as model.dropout_0.1-training.steps_500, sorted by key."""
    return plain_name("-".join(f"{key}_{written(value)}" for key, value in sorted(values.items())), limit)


def plain_name(text: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """Return a text as a name of a folder that needs no quotes on the command line, so it has no = and no commas.

    A name with other characters, or of more than `limit`, ends with a digest, so that other texts have other names.
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", text)
    if plain == text and len(text) <= limit:
        return text
    digest = sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: max(0, limit - len(digest) - 1)]}-{digest}".lstrip("-")


def unknown_setting(key: str) -> str:
    """Return the message for a key that does not exist, with the key that the user probably meant."""
    if key == EXPERIMENT:
        hint = "make `# @package _global_` the first line of its file, which names groups: `model:`"
    elif ours := ELSEWHERE.get(_ending(key)):
        hint = f"it is {ours} here"
    else:
        names = [*all_keys(), *group_names()]
        endings = get_close_matches(_ending(key), {_ending(name) for name in names}, n=1, cutoff=0.7)
        meant = get_close_matches(key, [name for name in names if _ending(name) in endings], n=1, cutoff=0)
        hint = f"did you mean {meant[0]}?" if meant else "`nmt COMMAND --help=all` lists the settings"
    return f"there is no setting {key}; {hint}"


def _ending(key: str) -> str:
    return key.rpartition(".")[2]


def _walk(settings: Any, prefix: str, *, adjustable: bool) -> Iterator[Key]:
    """Yield the settings of a group and of the groups in it; a group that is adjustable makes all of them so."""
    group, meanings = type(settings).__name__, _docstrings(type(settings).__module__)
    for field in fields(settings):
        value, name = getattr(settings, field.name), prefix + field.name
        may_change = adjustable or bool(field.metadata.keys() & ADJUSTABLE.keys())
        if is_dataclass(value):
            yield from _walk(value, name + ".", adjustable=may_change)
        else:
            kind, meaning = base_type(field.type), meanings.get((group, field.name), "")
            if choices := registry.CHOICES.get(name):
                listed = ", ".join(f"{value} ({words})" for value, (_, words) in choices.items())
                meaning = f"{meaning.rstrip('.')}: {listed}."
            yield Key(name, str(kind) if hasattr(kind, "__args__") else kind.__name__, value, meaning, may_change)


@cache
def _docstrings(module: str) -> dict[tuple[str, str], str]:
    """Return the docstrings under the fields of the classes of a module, which Python itself discards."""
    classes = [
        node for node in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(node, ast.ClassDef)
    ]
    found = {}
    for group in classes:
        for above, below in pairwise(group.body):
            match above, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[group.name, name] = inspect.cleandoc(text)
    return found
