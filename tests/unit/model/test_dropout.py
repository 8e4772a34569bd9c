"""Dropout on a CPU, and the places in the model that have it."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nmt.config.model import DROPS, ModelConfig
from nmt.config.registry import CHOICES
from nmt.model.backends.chosen import backend
from nmt.model.build import build_model
from nmt.model.dropout import Dropout
from nmt.model.packed import Packed

SMALL = ModelConfig(layers=2, d_model=16, d_ff=24, heads=2, dropout=0.0)
WORDS = 12
LINES = [[5, 6, 7, 8], [9], [10, 4]]
SETTINGS = [name for name in DROPS if name != "dropout"]


def dropped_by(dropout: Dropout, stream: Tensor) -> Tensor:
    return backend().dropout(stream, dropout)


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_dropout_zeroes_the_given_share_and_keeps_the_mean(probability: float) -> None:
    dropped = dropped_by(Dropout(probability), torch.ones(1001, 999))
    share = (dropped == 0).double().mean()
    assert share == pytest.approx(probability, abs=0.002)
    assert dropped.mean() == pytest.approx(1, abs=0.005)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - probability)])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
def test_masks_are_repeated_by_their_seed_and_absent_from_evaluation(setting: str, architecture: str) -> None:
    torch.manual_seed(1)
    plain = build_model(replace(SMALL, architecture=architecture), WORDS, WORDS)
    model = build_model(replace(plain.config, **{setting: 0.5}), WORDS, WORDS)  # type: ignore[arg-type]
    model.load_state_dict(plain.state_dict())
    stream = Packed.from_sentences(LINES)
    without = plain(stream, stream)
    assert torch.equal(model.eval()(stream, stream), without)
    model.train()
    outputs = []
    for seed in (1, 1, 2, 3, 4, 5):
        torch.manual_seed(seed)
        outputs.append(model(stream, stream))
    assert torch.equal(outputs[0], outputs[1])
    assert not all(torch.equal(outputs[0], each) for each in outputs)
