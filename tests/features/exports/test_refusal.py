"""Exporters refuse the registered choices of the model that they cannot express."""

from dataclasses import replace

import pytest

from nmt.config.choices import CHOICES
from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.features.exports.registry import EXPORTERS

CTRANSLATE2 = {
    "layer", "rms", "relu", "gelu", "swish", "swiglu", "sinusoidal", "learned", "rotary", "transformer",
}  # fmt: skip
EXPRESSED = {
    "argos": CTRANSLATE2,
    "ctranslate2": CTRANSLATE2,
    "onnx": {*CTRANSLATE2, *CHOICES["model.positions"]},
    "huggingface": {"layer", "relu", "gelu", "swish", "sinusoidal", "transformer"},
}


@pytest.mark.parametrize("target", EXPRESSED)
@pytest.mark.parametrize(
    ("setting", "name"),
    [(setting, name) for setting in CHOICES if setting.startswith("model.") for name in CHOICES[setting]],
)
def test_all_other_registered_choices_are_refused_by_name(target: str, setting: str, name: str) -> None:
    config = replace(ModelConfig(), **{setting.partition(".")[2]: name})  # type: ignore[arg-type]
    if name in EXPRESSED[target]:
        EXPORTERS[target].check(config)
        return
    with pytest.raises(UserError, match=f"^export.target={target} cannot express {setting}={name}, only [^\n]*$"):
        EXPORTERS[target].check(config)
