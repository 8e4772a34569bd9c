"""The settings of a mixture of corpora: what one corpus may set, and the stages of training."""

import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

from nmt.config.checks import ADJUSTABLE, NOT_OF_THE_TEXT, OF_ONE_CORPUS, marked
from nmt.config.choices import TEXT, brings, task_name
from nmt.config.schema.corpora import MAIN, Corpus, corpora_of
from nmt.errors import ConfigError, nearest

if TYPE_CHECKING:
    from nmt.config.schema import Config, DataConfig

MAX_WEIGHT = 1e6
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


@dataclass(frozen=True, kw_only=True)
class MixtureData:
    """The corpora of a mixture, and when and how much each of them is trained on."""

    weight: float = field(default=1.0, metadata={**NOT_OF_THE_TEXT, **OF_ONE_CORPUS})
    """Weight of this corpus in a mixture: its share of the training tokens, relative to that of the others."""
    mixture: dict[str, Any] = field(default_factory=dict, metadata=NOT_OF_THE_TEXT)
    """Corpora to train on besides this one, by name. Each has `data.*` settings of its own, written like
    data.mixture.crawled.train=[a.en,a.de]; its source, languages, columns and filters default to those of `data`."""
    temperature: float = field(default=0.0, metadata=NOT_OF_THE_TEXT)
    """If not 0, each weight of a mixture is multiplied by the corpus's tokens to the power of 1/temperature."""
    stages: list[str] = field(default_factory=list, metadata=NOT_OF_THE_TEXT)
    """Stages of training on a mixture, such as ['crawled until 20000','crawled main:3']; main is the corpus of
    data.train, and a corpus without a number has its own weight."""

    def __post_init__(self) -> None:
        """Check the corpora of the mixture and its stages."""
        check_weight(f"data.weight={self.weight:g}", self.weight)
        if not (self.temperature == 0 or 1 <= self.temperature < math.inf):
            raise ConfigError(f"data.temperature={self.temperature:g} must be a number from 1 on, or 0 to ignore sizes")
        corpora = corpora_of(cast("DataConfig", self))
        parse_stages(self.stages, corpora)
        tasks = {task_name(corpus.settings.target_lang) for corpus in corpora.values()}
        if len(tasks) > 1:
            other = min(tasks - {TEXT})
            raise ConfigError(f"data.mixture: all corpora or none must have target_lang={other}")


def checked(config: "Config", given: Container[str]) -> "Config":
    """Return the settings; refuse those of a mixture that have no effect."""
    data = config.of(MixtureData)
    if data.mixture:
        _check_all_are_trained_on(config.data)
        return config
    for name, usual in {"weight": 1.0, **OF_THE_MIXTURE}.items():
        value = getattr(data, name)
        if f"data.{name}" in given and value != usual:
            shown = f"[{','.join(value)}]" if isinstance(value, list) else f"{value:g}"
            raise ConfigError(
                f"data.{name}={shown} has no effect without another corpus: name one, such as "
                "data.mixture.more.train=[more.en,more.de]"
            )
    return config


def _check_all_are_trained_on(data: "DataConfig") -> None:
    stages = training_stages(data)
    for name in corpora_of(data):
        if not any(name in stage.weights for stage in stages):
            raise ConfigError(
                f"data.stages names the corpus {name} in no stage, so it would not be trained on: add it to a stage, "
                f"or leave {'data.train' if name == MAIN else f'data.mixture.{name}'} out"
            )


def other_corpora(data: "DataConfig") -> dict[str, Corpus]:
    """Return the corpora of the mixture by name, without the main one."""
    of_all = {"corpus", "max_pieces", *OF_THE_MIXTURE, *marked(data, ADJUSTABLE)}
    known = {each.name: each for each in fields(data) if each.name not in of_all}
    own = {name: _unset(each) for name, each in known.items() if "of_one_corpus" in each.metadata}
    types = {name: each.type for name, each in known.items()}
    found = {}
    for name, entry in cast(MixtureData, data).mixture.items():
        prefix = f"data.mixture.{name}"
        checked = check_entry(name, entry, types)
        try:
            settings = replace(data, **{**own, **OF_THE_MIXTURE, **checked})
        except ConfigError as error:
            raise ConfigError(f"{prefix}: {error}") from error
        if not settings.train and "text" not in brings("data.source", settings.source):
            raise ConfigError(f"{prefix}.train is empty: name the files of this corpus")
        found[name] = Corpus(settings, f"{prefix}.")
    return found


def _unset(setting: Field[Any]) -> Any:
    """Return the value of a setting that a corpus does not have: lists of files are empty."""
    return [] if setting.default is MISSING else setting.default


def training_stages(data: "DataConfig") -> list[Stage]:
    """Return the stages of training; without data.stages, there is one with all corpora."""
    corpora = corpora_of(data)
    return parse_stages(cast(MixtureData, data).stages, corpora) or [Stage(dict.fromkeys(corpora), None)]


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
