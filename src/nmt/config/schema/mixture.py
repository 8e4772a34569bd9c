"""The settings of a mixture of corpora: what one corpus may set, and the stages of training."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nmt.errors import ConfigError, nearest

MAIN = "main"
"""The name of the corpus of `data.train`."""
MAX_WEIGHT = 1e6
OWN = {
    **{"train": [], "valid": [], "test": [], "test_alignments": "", "train_alignments": ""},
    **{"hold_out": 0.0, "tag": "", "weight": 1.0},
}
"""Settings of a corpus of a mixture that do not default to those of the main corpus."""
OF_THE_MIXTURE = {"mixture": {}, "stages": [], "temperature": 0.0}
"""Settings of the whole mixture; one of its corpora cannot have them."""
IN_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
"""Types of settings in words."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of training, with the corpora that it trains on."""

    weights: Mapping[str, float | None]
    """The weight of each corpus by name; None for the one in the corpus's own settings."""
    until: int | None
    """The last step; None for the last stage."""


def check_entry(name: str, entry: Any, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a corpus of a mixture with the right types.

    Args:
        name: The name of the corpus.
        entry: Its settings, as the user wrote them.
        types: The type of each setting that a corpus may have, by name.
    """
    prefix = f"data.mixture.{name}"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise ConfigError(f"data.mixture: {name!r} must be a name of letters, digits, _ and -: file names contain it")
    if name == MAIN:
        raise ConfigError(f"{prefix}: {MAIN} is the name of the corpus of data.train: give this one another name")
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{prefix} must be settings, such as {{train: [more.en,more.de]}}")
    for key in entry:
        if key not in types:
            raise ConfigError(f"there is no setting {prefix}.{key}; {nearest(str(key), tuple(types))}")
    return {key: _typed(f"{prefix}.{key}", value, types[key]) for key, value in entry.items()}


def check_weight(written: str, weight: float) -> None:
    """Refuse a weight, which the user wrote like this, if it is not a reasonable positive number."""
    if not 0 < weight <= MAX_WEIGHT:
        raise ConfigError(
            f"{written} must be above 0 and at most {MAX_WEIGHT:g}: to train without a corpus, leave it out"
        )


def parse_stages(texts: Iterable[str], corpora: Iterable[str]) -> list[Stage]:
    """Read the stages of training, and check their corpora and their order.

    Args:
        texts: Stages such as "crawled main:3 until 20000"; the last one has no end.
        corpora: The names of all corpora.
    """
    texts, corpora = list(texts), tuple(corpora)
    stages = [_parse_stage(text, corpora) for text in texts]
    last = 0
    for text, stage in zip(texts[:-1], stages[:-1], strict=True):
        if stage.until is None:
            raise ConfigError(f"data.stages: {text!r} has no end: write `until STEP` in all stages but the last")
        if stage.until <= last:
            raise ConfigError(f"data.stages: {text!r} must end after step {last}: put the stages in order")
        last = stage.until
    if stages and stages[-1].until is not None:
        raise ConfigError(f"data.stages: {texts[-1]!r} is the last stage, which lasts to the end: remove `until`")
    return stages


def _parse_stage(text: str, corpora: tuple[str, ...]) -> Stage:
    words, until = text.split(), None
    if len(words) > 2 and words[-2] == "until":
        if not re.fullmatch(r"[0-9]{1,15}", words[-1]):
            raise ConfigError(f"data.stages: {text!r} must end with a step, such as `until 20000`")
        until, words = int(words[-1]), words[:-2]
    weights: dict[str, float | None] = {}
    for word in words:
        name, colon, number = word.partition(":")
        if name not in corpora:
            raise ConfigError(f"data.stages: there is no corpus {name!r} in the mixture; {nearest(name, corpora)}")
        if name in weights:
            raise ConfigError(f"data.stages: {text!r} names the corpus {name} twice: name it once")
        weights[name] = _weight(text, number) if colon else None
    if not weights:
        raise ConfigError(f"data.stages: {text!r} names no corpus: write a stage as `{MAIN}:3 crawled until 20000`")
    return Stage(weights, until)


def _weight(text: str, number: str) -> float:
    try:
        weight = float(number)
    except ValueError as error:
        raise ConfigError(f"data.stages: {text!r} has a weight that is no number: {number!r}") from error
    check_weight(f"data.stages: the weight {number} in {text!r}", weight)
    return weight


def _typed(key: str, value: Any, kind: Any) -> Any:
    """Return a value if it has the type of its setting."""
    if kind is float and type(value) is int:
        return float(value)
    if kind == list[str]:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        raise ConfigError(f"{key} must be a list, such as [a,b]")
    if type(value) is not kind:
        raise ConfigError(f"{key} must be {IN_WORDS[kind]}")
    return value
