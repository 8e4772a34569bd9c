"""COMET as a utility: its model is loaded for the searches that use it, and once for each engine."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config.compose import compose
from nmt.config.decoding import DecodingConfig
from nmt.evaluation import comet_utility as utility
from nmt.evaluation.comet_model import Comet

DEVICE = torch.device("meta")
"""Not that of the machine."""
IDS = ("input_ids", "attention_mask")


def with_settings(config: DecodingConfig, **settings: Any) -> DecodingConfig:
    return replace(config, **settings)


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
