"""COMET as a utility: its model is loaded for the searches that use it, and once for each engine."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.compose import compose
from nmt.config.decoding import DecodingConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.utilities import Utility
from nmt.evaluation import comet_utility as utility
from nmt.evaluation.comet_model import Comet
from tests.unit.small_models import LINES, make_model, make_tokenizer

DEVICE = torch.device("meta")
"""Not that of the machine."""
IDS = ("input_ids", "attention_mask")


def with_settings(config: DecodingConfig, **settings: Any) -> DecodingConfig:
    return replace(config, **settings)


def test_the_model_is_loaded_for_minimum_bayes_risk_only(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(name: str, setting: str, device: torch.device) -> Utility:
        assert (setting, device.type) == ("decoding.comet", "cpu")
        loaded.append(name)
        return compare

    def compare(texts: Sequence[str], source: str) -> NDArray[np.float64]:
        return np.ones((len(texts), len(texts)))

    monkeypatch.setattr(utility, "comet_utility", load)
    beam = with_settings(compose(["decoding.extra_length=6"]).decoding, utility="comet", comet="model")
    risk, tokenizer = with_settings(beam, strategy="mbr", candidates=2), make_tokenizer()
    engine = TorchEngine([make_model(tokenizer)], tokenizer, beam, torch.device("cpu"))
    list(engine.translate(LINES))
    list(engine.with_search(with_settings(beam, alpha=1.0, comet="other"), 1).translate(LINES))
    assert not loaded
    by_risk = engine.with_search(risk, 1)
    assert loaded == ["model"]
    assert by_risk.maximises == "comet"
    assert [each.candidates[0].score for each in by_risk.translate(["a dog"])] == [1.0]


def test_a_strangers_model_does_not_name_the_model_of_comet() -> None:
    config = with_settings(compose(["decoding.beam=7"]).decoding, utility="comet", comet="/a/folder")
    assert config.naming_no_file == DecodingConfig(beam=7)
    assert with_settings(config, utility="chrf").naming_no_file.beam == 7


def test_the_utility_computes_on_the_device_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[torch.device] = []

    class RegressionMetric:
        encoder = SimpleNamespace(prepare_sample=lambda lines: dict.fromkeys(IDS, torch.ones(len(lines), 3)))

        def to(self, device: torch.device) -> None:
            moved.append(device)

        def get_sentence_embedding(self, ids: Tensor, mask: Tensor) -> Tensor:
            assert ids.device == mask.device == DEVICE
            return torch.empty(len(ids), 4, device=DEVICE)

        def estimate(self, sources: Tensor, translations: Tensor, references: Tensor) -> SimpleNamespace:
            return SimpleNamespace(score=torch.full((len(translations),), 0.5))

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    library = SimpleNamespace(RegressionMetric=RegressionMetric)
    monkeypatch.setitem(sys.modules, "comet", SimpleNamespace(models=library))
    monkeypatch.setitem(sys.modules, "comet.models", library)
    monkeypatch.setattr(utility, "load", lambda *_: Comet(RegressionMetric(), "2.2", Path()))
    config = with_settings(compose([]).decoding, utility="comet", comet="model")
    compare = utility.by_comet(config, DEVICE)
    assert compare(["a", "b"], "source").tolist() == [[50, 50], [50, 50]]
    assert moved == [DEVICE]
