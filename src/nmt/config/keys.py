"""The dotted keys of all settings, read from the fields of the schema and the docstrings under them."""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import SequenceMatcher
from functools import cache, reduce
from hashlib import sha256
from typing import Any

from nmt.config import registry
from nmt.config.checks import ADJUSTABLE, MAX_NAME_CHARACTERS
from nmt.config.other_toolkits import OURS
from nmt.config.tree import Config

_TYPES_IN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "bool | None": "true, false or null",
    "str": "text",
    "list[str]": "a list, such as [a,b]",
    "dict[str, typing.Any]": "settings by name",
}
_DIGEST_CHARACTERS = 8
_MIN_SIMILARITY = 0.75
"""The lowest similarity at which an error message suggests a key."""
_MIN_SIMILARITY_OF_LAST = 0.5
"""The lowest similarity of the last words of keys in the same group at which their whole names are compared."""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    type: str
    default: Any
    meaning: str
    adjustable: bool
    """True if the setting may change when a run is resumed."""

    @property
    def kind(self) -> str:
        """The type in words, for an error message."""
        return _TYPES_IN_WORDS[self.type]


@cache
def all_keys() -> dict[str, Key]:
    """Return every setting by its dotted name, in the order of the tree."""
    return {key.name: key for key in _walk(Config(), "", adjustable=False)}


@cache
def open_keys() -> tuple[str, ...]:
    """Return the settings that contain others, under names that the user chooses."""
    return tuple(name for name, key in all_keys().items() if key.type.startswith("dict"))


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


def settings_name(values: Mapping[str, object]) -> str:
    """Return settings as a name such as model.dropout_0.1-training.steps_500, sorted by key."""
    return plain_name("-".join(f"{key}_{written(value)}" for key, value in sorted(values.items())))


def plain_name(text: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """Return a text as a name of a folder that needs no quotes on the command line, so it has no = and no commas.

    A name with other characters, or of more than `limit`, ends with a digest, so that other texts have other names.
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", text)
    if plain == text and len(text) <= limit:
        return text
    digest = sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: max(0, limit - len(digest) - 1)]}-{digest}".lstrip("-")


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return the settings with other values for some, by their dotted names; check them like all settings."""
    changed: Config = _with_values(config, values)
    return changed


def _with_values(settings: Any, values: Mapping[str, Any]) -> Any:
    """Change a group at once: settings are checked against each other, so one of several may not fit without others."""
    changes: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if rest:
            groups.setdefault(name, {})[rest] = value
        else:
            changes[name] = value
    changes |= {name: _with_values(getattr(settings, name), inner) for name, inner in groups.items()}
    return replace(settings, **changes)


def nearest_key(wrong: str, choices: Iterable[str]) -> str:
    """Return a suggestion for an error message: the name here of what others call so, or the most similar key."""
    known = OURS.get(wrong.rpartition(".")[2].lower().replace("-", "_"))
    if known:
        meaning = all_keys()[known].meaning.partition(". ")[0].rstrip(".")
        return f"it is {known} here: {meaning[0].lower()}{meaning[1:]}"
    (similarity, _), best = max((_similarity(wrong, choice), choice) for choice in choices)
    return f"did you mean {best}?" if similarity >= _MIN_SIMILARITY else "`nmt COMMAND --help=all` lists the settings"


def _similarity(wrong: str, choice: str) -> tuple[float, float]:
    """Return the similarity of two keys or of their last words, and that of the whole keys to break ties."""
    (group, _, last), (other_group, _, other_last) = wrong.rpartition("."), choice.rpartition(".")
    whole = _ratio(wrong, choice)
    by_last = _ratio(last, other_last)
    if group != other_group:
        return max(whole, by_last), whole
    return (whole if by_last > _MIN_SIMILARITY_OF_LAST else by_last), whole


def _ratio(left: str, right: str) -> float:
    return SequenceMatcher(None, left, right).ratio()


def _walk(settings: Any, prefix: str, *, adjustable: bool) -> Iterator[Key]:
    """Yield the settings of a group and of the groups in it; a group that is adjustable makes all of them so."""
    meanings = _meanings(type(settings))
    for field in fields(settings):
        value, name = getattr(settings, field.name), prefix + field.name
        may_change = adjustable or bool(field.metadata.keys() & ADJUSTABLE.keys())
        if is_dataclass(value):
            yield from _walk(value, name + ".", adjustable=may_change)
        else:
            kind = field.type.__name__ if isinstance(field.type, type) and not hasattr(field.type, "__args__") else ""
            meaning = meanings.get(field.name, "")
            yield Key(name, kind or str(field.type), value, _with_choices(name, meaning), may_change)


def _with_choices(name: str, meaning: str) -> str:
    """Return the meaning of a setting, followed by its registered choices."""
    listed = registry.describe(name)
    return f"{meaning.rstrip('.')}: {listed}." if listed else meaning


def _meanings(settings: type) -> dict[str, str]:
    """Return the docstrings under the fields of a class and of those that it extends."""
    return {
        name: meaning
        for each in settings.__mro__[:-1]
        for (owner, name), meaning in _docstrings(each.__module__).items()
        if owner == each.__name__
    }


@cache
def _docstrings(module: str) -> dict[tuple[str, str], str]:
    """Return the docstrings under the fields of a module's classes, which Python itself discards."""
    found = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            for above, below in zip(node.body, node.body[1:], strict=False):
                match above, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[node.name, name] = inspect.cleandoc(text)
    return found
