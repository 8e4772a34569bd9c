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
from typing import Any, TypeVar

from nmt.config import registry
from nmt.config.checks import ADJUSTABLE, MAX_NAME_CHARACTERS, Group, base_type
from nmt.config.tree import Config

AnyGroup = TypeVar("AnyGroup", bound=Group)

EXPERIMENT = "experiment"
"""The group whose files may set any setting."""
ELSEWHERE = {
    "batch_size": "training.batch_tokens",
    "beam_size": "decoding.beam",
    "epochs": "training.steps",
    "hidden_size": "model.d_model",
    "length_penalty": "decoding.alpha",
    "lr": "training.learning_rate",
    "max_length": "data.max_pieces",
    "max_steps": "training.steps",
    "num_heads": "model.heads",
    "num_layers": "model.layers",
}
"""What other toolkits call the commonest settings."""
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


def describe_keys(prefix: str) -> list[Key]:
    """Return the settings of a group (`training`), or the single setting of exactly this name."""
    return [key for name, key in all_keys().items() if name == prefix or name.startswith(prefix + ".")]


def value_of(config: Config, name: str) -> Any:
    """Return the value of a setting by its dotted name."""
    return reduce(getattr, name.split("."), config)


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


def with_values(settings: AnyGroup, values: Mapping[str, Any]) -> AnyGroup:
    """Return settings with other values for some, by their dotted names; check them like all settings.

    A group changes at once: settings are checked against each other, so one of several may not fit without others.
    """
    changes: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, dot, rest = path.partition(".")
        if dot:
            groups.setdefault(name, {})[rest] = value
        else:
            changes[name] = value
    changes |= {name: with_values(getattr(settings, name), inner) for name, inner in groups.items()}
    return replace(settings, **changes)


def unknown_setting(key: str) -> str:
    """Return the message for a key that does not exist, with the key that the user probably meant."""
    last = key.rpartition(".")[2]
    same_name = {name.rpartition(".")[2]: name for name in reversed(all_keys())}
    if key == EXPERIMENT:
        hint = "make `# @package _global_` the first line of its file, which names groups: `model:`"
    elif ours := ELSEWHERE.get(last):
        hint = f"it is {ours} here"
    elif close := get_close_matches(key, [*all_keys(), *group_names()], n=1, cutoff=0.75):
        hint = f"did you mean {close[0]}?"
    elif close := get_close_matches(last, same_name, n=1, cutoff=0.75):
        hint = f"did you mean {same_name[close[0]]}?"
    else:
        hint = "`nmt COMMAND --help=all` lists the settings"
    return f"there is no setting {key}; {hint}"


def _walk(settings: Any, prefix: str, *, adjustable: bool) -> Iterator[Key]:
    """Yield the settings of a group and of the groups in it; a group that is adjustable makes all of them so."""
    meanings = _docstrings(type(settings))
    for field in fields(settings):
        value, name = getattr(settings, field.name), prefix + field.name
        may_change = adjustable or bool(field.metadata.keys() & ADJUSTABLE.keys())
        if is_dataclass(value):
            yield from _walk(value, name + ".", adjustable=may_change)
        else:
            kind, meaning, listed = base_type(field.type), meanings.get(field.name, ""), registry.describe(name)
            meaning = f"{meaning.rstrip('.')}: {listed}." if listed else meaning
            yield Key(name, str(kind) if hasattr(kind, "__args__") else kind.__name__, value, meaning, may_change)


def _docstrings(settings: type) -> dict[str, str]:
    """Return the docstrings under the fields of a class, which Python itself discards."""
    found = {}
    for node in _module_tree(settings.__module__).body:
        if isinstance(node, ast.ClassDef) and node.name == settings.__name__:
            for above, below in zip(node.body, node.body[1:], strict=False):
                match above, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = inspect.cleandoc(text)
    return found


@cache
def _module_tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))
