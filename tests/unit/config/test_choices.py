"""The registered names of settings, against the code that they name."""

import pytest

from nmt.config.keys import all_keys
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.errors import ConfigError


@pytest.mark.parametrize(("setting", "name"), [(setting, name) for setting in CHOICES for name in CHOICES[setting]])
def test_every_choice_has_code_and_is_in_the_help(setting: str, name: str) -> None:
    assert callable(load(setting, name)) or load(setting, name) is not None
    assert f"{name} ({CHOICES[setting][name].meaning})" in all_keys()[setting].meaning


def test_an_unknown_choice_is_refused_and_the_choices_are_named() -> None:
    with pytest.raises(ConfigError, match=r"model\.norm=nosuch is not one of layer, rms"):
        ModelConfig(norm="nosuch")
