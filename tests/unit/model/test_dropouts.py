"""Dropout on attention weights and activations, against plain computations with the same masks."""

import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.config.checks import DROPS, marked
from nmt.config.compose import compose
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.data.loader import MicroBatch
from nmt.errors import ConfigError, UserError
from nmt.model.attention import PaddedAttend
from nmt.model.attention_choice import plan_for
from nmt.model.attention_plan import AttentionSpec, plan_attention
from nmt.model.build import build_model
from nmt.model.cpu import dropout
from nmt.model.packed import Packed

SMALL = ModelConfig(layers=2, d_model=16, d_ff=24, heads=2, dropout=0.0)
WORDS = 12
LINES = [[5, 6, 7, 8], [9], [10, 4]]
SETTINGS = [name for name in marked(ModelConfig, DROPS) if name != "dropout"]


class FixedBias(nn.Module):
    """The same numbers (h, L, L) for every sentence."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = table

    def forward(self, *_: Tensor) -> Tensor:
        return self.table[None]


def batch() -> MicroBatch:
    stream = Packed.from_sentences(LINES)
    return MicroBatch(stream, stream, stream.tokens, np.arange(len(LINES)))


@pytest.mark.parametrize("lines", [LINES, [[5, 6, 7], [8, 9, 10]]], ids=["padding", "equal"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_dropped_attention_weights_equal_autograd_with_the_same_mask(
    lines: list[list[int]], causal: bool, biased: bool
) -> None:
    torch.manual_seed(1)
    stream, probability = Packed.from_sentences(lines), 0.4
    heads, square = (len(stream.tokens), 2, 4), (2, stream.longest, stream.longest)
    queries, keys, values, table = (
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in (heads, heads, heads, square)
    )
    drawn: list[Tensor] = []

    def draw(like: Tensor, share: float) -> Tensor:
        drawn.append(dropout.dropout_mask(like, share))
        return drawn[-1]

    with patch("nmt.model.attention.dropout_mask", draw):
        attend = PaddedAttend(stream, stream, causal=causal, dropout=probability)
        found = attend(queries, keys, values, FixedBias(table) if biased else None)
    expected = []
    for sentence, (start, end) in enumerate(zip(stream.offsets, stream.offsets[1:], strict=False)):
        q, k, v = (each[start:end].transpose(0, 1) for each in (queries, keys, values))
        scores, length = q @ k.mT / math.sqrt(4), int(end - start)
        scores = scores + table[:, :length, :length] if biased else scores
        if causal:
            scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -torch.inf)
        kept = drawn[0][sentence, :, :length, :length] / (1 - probability)
        expected.append((scores.softmax(-1) * kept @ v).transpose(0, 1).flatten(1))
    plain, inputs = torch.cat(expected), [queries, keys, values, *([table] if biased else [])]
    torch.testing.assert_close(found, plain)
    upstream = torch.randn_like(plain)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(plain, inputs, upstream)
    )


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


def test_the_mean_over_many_masks_is_attention_without_dropout() -> None:
    torch.manual_seed(1)
    stream, copies = Packed.from_sentences(LINES), Packed.from_sentences(LINES * 4000)
    queries, keys, values = (torch.randn(len(stream.tokens), 2, 4) for _ in range(3))
    dropping = PaddedAttend(copies, copies, causal=False, dropout=0.3)
    draws = dropping(queries.repeat(4000, 1, 1), keys.repeat(4000, 1, 1), values.repeat(4000, 1, 1))
    exact = PaddedAttend(stream, stream, causal=False)(queries, keys, values)
    torch.testing.assert_close(draws.unflatten(0, (4000, -1)).mean(0), exact, atol=0.06, rtol=0)


def test_dropped_activations_are_those_between_the_two_products() -> None:
    torch.manual_seed(1)
    model = build_model(replace(SMALL, activation_dropout=0.5), WORDS, WORDS).train()
    layer = next(module for name, module in model.named_modules() if name.endswith("feed_forward"))
    rows = torch.randn(7, 16)
    torch.manual_seed(2)
    found = layer(rows)
    torch.manual_seed(2)
    hidden = torch.relu(layer.inner(rows))  # type: ignore[operator]
    mask = dropout.dropout_mask(hidden, 0.5)
    torch.testing.assert_close(found, layer.outer(2 * hidden * mask))  # type: ignore[operator]
    assert 0.2 < float(mask.mean()) < 0.8


def test_attention_that_cannot_drop_weights_is_not_chosen() -> None:
    config = replace(SMALL, attention_dropout=0.1)
    for kind in ("flash", "short"):
        with pytest.raises(UserError, match=r"cannot drop attention weights \(model.attention_dropout=0.1\)"):
            plan_for(kind, "cuda", torch.bfloat16, config)
    stream = Packed.from_sentences(LINES)
    with patch.object(torch.Tensor, "is_cuda", True):
        chosen = plan_attention(AttentionSpec(stream, stream, False, 16, torch.bfloat16, dropout=0.1))
    assert type(chosen) is PaddedAttend


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("value", ["1", "-0.1", "nan"])
def test_shares_outside_of_0_and_1_are_refused(setting: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"model.{setting}=.* must be at least 0 and below 1"):
        compose([f"model.{setting}={value}"])
