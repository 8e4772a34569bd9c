"""The registered names of settings, against the code that they name."""

import pytest

from nmt.config.keys import all_keys
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.errors import ConfigError
from nmt.model.activations import Activation
from nmt.model.norms import Norm
from nmt.model.positions import Positions

KINDS = {"model.norm": Norm, "model.activation": Activation}


@pytest.mark.parametrize(("setting", "name"), [(setting, name) for setting in CHOICES for name in CHOICES[setting]])
def test_every_choice_has_code_and_is_in_the_help(setting: str, name: str) -> None:
    found = load(setting, name)
    if setting in KINDS:
        assert isinstance(found, KINDS[setting])
    if setting == "model.positions":
        assert issubclass(found, Positions)
    assert f"{name} ({CHOICES[setting][name].meaning})" in all_keys()[setting].meaning


@pytest.mark.parametrize("field", ["architecture", "positions", "norm", "activation"])
def test_an_unknown_choice_is_refused_and_the_choices_are_named(field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ModelConfig(**{field: "nosuch"})  # type: ignore[arg-type]
    assert f"model.{field}=nosuch is not one of {', '.join(CHOICES[f'model.{field}'])}" in str(refused.value)
