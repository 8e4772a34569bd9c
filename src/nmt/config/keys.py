"""The dotted keys of the settings, as the schema's fields and the docstrings under them say."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from difflib import SequenceMatcher
from functools import cache, reduce
from typing import Any

from nmt.config import choices, schema

GROUPS = ("experiment", "data", "tokenizer", "model", "training", "decoding", "export", "runtime", "tracking")
"""Settings that are also chosen as a whole, by the name of a file: `model=big`."""

_IN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "list[str]": "a list, such as [a,b]",
}
_CLOSE_ENOUGH = 0.6


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    type: str
    default: Any
    meaning: str

    @property
    def kind(self) -> str:
        """Its type, in words."""
        return _IN_WORDS[self.type]


@cache
def all_keys() -> dict[str, Key]:
    """Every setting by its dotted name, in the schema's order."""
    return {key.name: key for key in _walk(schema.Config(), "", _docstrings())}


def describe_keys(prefix: str) -> list[Key]:
    """The settings of a group (`training`), or the one of exactly that name."""
    return [key for name, key in all_keys().items() if name == prefix or name.startswith(prefix + ".")]


def value_of(config: schema.Config, name: str) -> Any:
    """What a setting is in a configuration."""
    return reduce(getattr, name.split("."), config)


def nearest_key(wrong: str, choices: Iterable[str]) -> str:
    """Say which of `choices` may be meant, by the whole key or by its last part: a clause for an error message."""
    scored = max((_likeness(wrong, choice), choice) for choice in choices)
    (likeness, _), best = scored
    return f"did you mean {best}?" if likeness >= _CLOSE_ENOUGH else "`nmt STAGE --help` lists the settings"


def _likeness(wrong: str, choice: str) -> tuple[float, float]:
    whole = _ratio(wrong, choice)
    return max(whole, _ratio(wrong.rpartition(".")[2], choice.rpartition(".")[2])), whole


def _ratio(left: str, right: str) -> float:
    return SequenceMatcher(None, left, right).ratio()


def _walk(settings: Any, prefix: str, meanings: dict[tuple[str, str], str]) -> Iterator[Key]:
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = prefix + field.name
        if is_dataclass(value):
            yield from _walk(value, name + ".", meanings)
        else:
            kind = field.type.__name__ if isinstance(field.type, type) and not hasattr(field.type, "__args__") else ""
            meaning = meanings.get((type(settings).__name__, field.name), "")
            yield Key(name, kind or str(field.type), value, _with_choices(name, meaning))


def _with_choices(name: str, meaning: str) -> str:
    listed = choices.describe(name)
    return f"{meaning.rstrip('.')}: {listed}." if listed else meaning


def _docstrings() -> dict[tuple[str, str], str]:
    """The docstring under each field, which Python itself does not keep."""
    found = {}
    for node in ast.parse(inspect.getsource(schema)).body:
        if isinstance(node, ast.ClassDef):
            for above, below in zip(node.body, node.body[1:], strict=False):
                match above, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[node.name, name] = inspect.cleandoc(text)
    return found
