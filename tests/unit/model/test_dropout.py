"""Dropout on a CPU, and the places in the model that have it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.config.compose import compose
from nmt.config.model import DROPS, ModelConfig
from nmt.config.registry import CHOICES
from nmt.data.loader import MicroBatch
from nmt.errors import ConfigError
from nmt.model.backends.chosen import backend
from nmt.model.build import build_model
from nmt.model.dropout import Dropout, dropout_mask
from nmt.model.layers import FeedForward
from nmt.model.packed import Packed

SMALL = ModelConfig(layers=2, d_model=16, d_ff=24, heads=2, dropout=0.0)
WORDS = 12
LINES = [[5, 6, 7, 8], [9], [10, 4]]
SETTINGS = [name for name in DROPS if name != "dropout"]


def batch() -> MicroBatch:
    stream = Packed.from_sentences(LINES)
    return MicroBatch(stream, stream, stream.tokens, np.arange(len(LINES)))


def dropped_by(dropout: Dropout, stream: Tensor) -> Tensor:
    return backend().dropout(stream, dropout)


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_dropout_zeroes_the_given_share_and_keeps_the_mean(probability: float) -> None:
    dropped = dropped_by(Dropout(probability), torch.ones(1001, 999))
    share = (dropped == 0).double().mean()
    assert share == pytest.approx(probability, abs=0.002)
    assert dropped.mean() == pytest.approx(1, abs=0.005)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - probability)])


def test_neighbouring_coordinates_are_dropped_independently() -> None:
    kept = (dropped_by(Dropout(0.5), torch.ones(400_000)) != 0).double() - 0.5
    for distance in (1, 2, 3, 4, 5, 8):
        assert abs((kept[:-distance] * kept[distance:]).mean()) < 0.002


def test_the_gradient_has_the_mask_of_the_forward_pass() -> None:
    stream = torch.randn(50, 7, requires_grad=True)
    dropped = dropped_by(Dropout(0.4), stream)
    dropped.sum().backward()
    torch.testing.assert_close(stream.grad, dropped.detach() / stream.detach())


def test_the_same_seed_gives_the_same_mask() -> None:
    dropout, stream, drawn = Dropout(0.3), torch.ones(333), []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append(dropped_by(dropout, stream))
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], dropped_by(dropout, stream))


def test_nothing_is_dropped_when_not_training() -> None:
    stream = torch.randn(10, 3)
    assert dropped_by(Dropout(0.9).eval(), stream) is stream
    assert dropped_by(Dropout(0.0), stream) is stream


def test_a_probability_below_the_smallest_step_is_no_error() -> None:
    dropped = dropped_by(Dropout(5e-6), torch.ones(3, 5))  # of a size that the operations in C do not take
    assert ((dropped == 0) | (dropped - 1 < 1e-4)).all()


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


def test_dropped_activations_are_those_between_the_two_products() -> None:
    torch.manual_seed(1)
    model = build_model(replace(SMALL, activation_dropout=0.5), WORDS, WORDS).train()
    layer = next(module for module in model.modules() if isinstance(module, FeedForward))
    rows = torch.randn(7, 16)
    torch.manual_seed(2)
    found = layer(rows)
    torch.manual_seed(2)
    hidden = torch.relu(layer.inner(rows))
    mask = dropout_mask(hidden, 0.5)
    torch.testing.assert_close(found, layer.outer(2 * hidden * mask))
    assert 0.2 < float(mask.mean()) < 0.8


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("value", ["1", "-0.1", "nan"])
def test_shares_outside_of_0_and_1_are_refused(setting: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"model.{setting}=.* must be at least 0 and below 1"):
        compose([f"model.{setting}={value}"])
