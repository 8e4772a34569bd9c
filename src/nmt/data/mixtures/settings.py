"""The settings of a mixture of corpora: what one corpus may set, and the stages of training."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from nmt.config.data import MAIN, OF_THE_MIXTURE, DataConfig, corpora_of
from nmt.config.tree import Config
from nmt.errors import ConfigError, nearest

MAX_WEIGHT = 1e6


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of training, with the corpora that it trains on."""

    weights: Mapping[str, float | None]
    """The weight of each corpus by name; None for the one in the corpus's own settings."""
    until: int | None
    """The last step; None for the last stage."""


def checked(config: Config, given: Container[str]) -> Config:
    """Return the settings; refuse those of a mixture that have no effect."""
    data = config.data
    parse_stages(data.stages, corpora_of(data))
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


def _check_all_are_trained_on(data: DataConfig) -> None:
    stages = training_stages(data)
    for name in corpora_of(data):
        if not any(name in stage.weights for stage in stages):
            raise ConfigError(
                f"data.stages names the corpus {name} in no stage, so it would not be trained on: add it to a stage, "
                f"or leave {'data.train' if name == MAIN else f'data.mixture.{name}'} out"
            )


def training_stages(data: DataConfig) -> list[Stage]:
    """Return the stages of training; without data.stages, there is one with all corpora."""
    corpora = corpora_of(data)
    return parse_stages(data.stages, corpora) or [Stage(dict.fromkeys(corpora), None)]


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
