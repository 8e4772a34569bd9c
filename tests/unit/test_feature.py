"""Features are found, and their settings join those of the core."""

import pickle
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.config.schema import AveragingConfig, Config
from nmt.config.schema.extend import _extended
from nmt.discovery import features, imported
from nmt.errors import ConfigError
from nmt.features.serving.settings import ServeConfig

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """Settings that a feature adds to a group of the core."""

    weighted: float = 0.5
    """A number."""

    def __post_init__(self) -> None:
        if self.weighted < 0:
            raise ConfigError(f"averaging.weighted={self.weighted} must be at least 0")


def test_added_settings_follow_those_of_the_core_and_all_are_checked() -> None:
    extended = _extended(AveragingConfig, [Weighted])
    assert [each.name for each in fields(extended)] == [*(each.name for each in fields(AveragingConfig)), "weighted"]
    group = extended(last=3, weighted=0.25)
    assert isinstance(group, AveragingConfig)
    assert isinstance(group, Weighted)
    with pytest.raises(ConfigError, match=r"averaging\.weighted=-1 must be at least 0"):
        extended(weighted=-1)
    with pytest.raises(ConfigError, match=r"averaging\.last"):
        extended(last=-1)


def test_a_group_without_additions_is_that_of_the_core() -> None:
    assert _extended(AveragingConfig, []) is AveragingConfig


def test_settings_of_a_feature_are_found_by_their_class_and_survive_pickle() -> None:
    config = compose(["serve.port=7"])
    assert config.of(ServeConfig).port == 7
    assert pickle.loads(pickle.dumps(config)) == config
    assert isinstance(config, Config)


def test_settings_of_a_class_that_no_feature_declares_are_an_error() -> None:
    with pytest.raises(LookupError, match="Weighted"):
        compose([]).of(Weighted)


def test_every_declared_name_exists() -> None:
    codes = [
        choice.code for each in features().values() for some in each.all_choices.values() for choice in some.values()
    ]
    codes += [group.code for each in features().values() for group in each.settings.values()]
    codes += [code for each in features().values() for code in each.sections]
    codes += [f"{command.module}:run" for each in features().values() for command in each.commands.values()]
    codes += [code for each in features().values() for code in (*each.metrics.values(), *each.findings.values())]
    codes += [code for each in features().values() for code in each.text_tasks]
    codes += [code for each in features().values() for code in (*each.filters, *each.test_sets.values())]
    formats = [each for feature in features().values() for each in feature.file_formats]
    codes += [code for each in formats for code in (each.pairs, each.sentences) if code]
    functions = [(each.completes_settings, each.tokenizer, each.begins) for each in features().values()]
    codes += [each.watches_runs for each in features().values() if each.watches_runs]
    codes += [code for some in functions for code in some if code]
    assert codes
    assert all(imported(code) is not None for code in codes)
