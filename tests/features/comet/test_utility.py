"""COMET as a utility: its model is loaded for the searches that use it, and once for each engine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt.config.compose import compose
from nmt.config.schema import DecodingConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.features.comet import utility
from tests.unit.small_models import LINES, make_model, make_tokenizer


def with_settings(config: DecodingConfig, **settings: Any) -> DecodingConfig:
    return replace(config, **settings)


def test_the_model_is_loaded_for_minimum_bayes_risk_only(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(name: str, setting: str) -> utility.Utility:
        assert setting == "decoding.comet"
        loaded.append(name)
        return compare

    def compare(texts: Sequence[str], source: str) -> NDArray[np.float64]:
        return np.ones((len(texts), len(texts)))

    monkeypatch.setattr(utility, "comet_utility", load)
    beam = with_settings(compose(["decoding.extra_length=6"]).decoding, utility="comet", comet="model")
    risk, tokenizer = with_settings(beam, strategy="mbr", candidates=2), make_tokenizer()
    models = [make_model(tokenizer)]
    engine = TorchEngine(models, tokenizer, beam, torch.device("cpu"))
    list(engine.translate(LINES))
    list(engine.with_search(with_settings(beam, alpha=1.0, comet="other"), 1).translate(LINES))
    assert not loaded
    by_risk = engine.with_search(risk, 1)
    assert loaded == ["model"]
    assert by_risk.maximises == "comet"
    assert [each.candidates[0].score for each in by_risk.translate(["a dog"])] == [1.0]
    by_risk.with_search(replace(risk, nbest=2), 2)
    assert loaded == ["model"]
    by_risk.with_search(with_settings(risk, comet="other"), 1)
    TorchEngine(models, tokenizer, risk, torch.device("cpu"))
    assert loaded == ["model", "other", "model"]


def test_a_strangers_model_does_not_name_the_model_of_comet() -> None:
    config = with_settings(compose(["decoding.beam=7"]).decoding, utility="comet", comet="/a/folder")
    assert config.naming_no_file == DecodingConfig(beam=7)
    assert with_settings(config, utility="chrf").naming_no_file.beam == 7
