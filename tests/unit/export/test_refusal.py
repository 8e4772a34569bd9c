"""What exporters can express, asked of the registry."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config.choices import CHOICES
from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.export import ctranslate2, huggingface
from tests.unit.export.models import tokenizer

EXPRESSED = {
    "ctranslate2": {"layer", "rms", "relu", "gelu", "swiglu", "sinusoidal", "learned", "rotary", "transformer"},
    "huggingface": {"layer", "relu", "gelu", "sinusoidal", "transformer"},
}


@pytest.mark.parametrize("target", EXPRESSED)
@pytest.mark.parametrize(("setting", "name"), [(setting, name) for setting in CHOICES for name in CHOICES[setting]])
def test_all_other_registered_choices_are_refused_by_name(target: str, setting: str, name: str, tmp_path: Path) -> None:
    if name in EXPRESSED[target]:
        pytest.skip("it can be exported")
    config = replace(ModelConfig(), **{setting.partition(".")[2]: name})  # type: ignore[arg-type]
    write: Callable[..., None] = ctranslate2.write if target == "ctranslate2" else huggingface.write
    rest: tuple[object, ...] = ("float32",) if target == "ctranslate2" else (("en", "de"), {})
    with pytest.raises(UserError, match=f"^export.target={target} cannot express {setting}={name}, only [^\n]*$"):
        write(tmp_path, config, {}, tokenizer(), *rest)
    assert not list(tmp_path.iterdir())
