"""The decoder-only model against a plain implementation, exhaustive search, and a task that it must learn."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS, PAD
from tests.unit.decoding.toys import search_with
from tests.unit.model import reference

TINY = ModelConfig(architecture="decoder_only", layers=2, d_model=16, d_ff=24, heads=4, dropout=0.0)
VOCABULARY = 11
CONFIGS = {
    "sinusoidal": TINY,
    "untied": replace(TINY, tie_embeddings=False, norm_placement="pre"),
    **{
        name: replace(TINY, positions=name, kv_heads=2)
        for name in CHOICES["model.positions"]
        if name not in ("sinusoidal", "learned")
    },
}
SOURCES, TARGETS = [[5, 6, 7, 3], [8], [9, 10, 4, 5, 6, 7], [4, 4]], [[2, 5], [2, 9, 9, 8, 7], [2], [2, 4, 6]]


def build(config: ModelConfig) -> TranslationModel:
    torch.manual_seed(1)
    model = build_model(config, VOCABULARY, VOCABULARY).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def decoder_only_logits(weights: dict[str, Tensor], config: ModelConfig, source: Tensor, target: Tensor) -> Tensor:
    """Scores (length of target, vocabulary) of a decoder-only model for one sentence pair."""
    sides = (
        reference.embed(weights, "source", source, config),
        reference.embed(weights, "target", target, config, first=len(source)),
    )
    x = torch.cat(sides)
    for i in range(config.layers):
        name = f"decoder.{i}.attention"
        attend = partial(reference.self_attention, weights, name, config, True)
        x = reference.around(weights, f"{name}_residual", x, config, attend)
        feed = partial(reference.feed_forward, weights, f"decoder.{i}.feed_forward", config)
        x = reference.around(weights, f"decoder.{i}.feed_forward_residual", x, config, feed)
    if config.norm_placement == "pre":
        x = reference.norm(weights, "decoder_norm", x, config)
    return x[len(source) :] @ weights["vectors.shared" if config.tie_embeddings else "vectors.projection"].T


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("pairs", [[0, 1, 2, 3], [3, 3]])
def test_equals_the_plain_implementation(config: ModelConfig, pairs: list[int]) -> None:
    model = build(config)
    sources, targets = ([side[pair] for pair in pairs] for side in (SOURCES, TARGETS))
    scores = model.logits(model(Packed.from_sentences(sources), Packed.from_sentences(targets)))
    weights = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
    expected = torch.cat(
        [
            decoder_only_logits(weights, config, torch.tensor(source), torch.tensor(target))
            for source, target in zip(sources, targets, strict=True)
        ]
    )
    torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-10)
    pull = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    scores.backward(pull)
    expected.backward(pull)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, weights[name].grad, rtol=1e-9, atol=1e-9, msg=name)


def test_beam_search_finds_what_exhaustive_search_finds() -> None:
    model = build(TINY).eval()
    weights: dict[str, Tensor] = dict(model.named_parameters())
    words = [word for word in range(VOCABULARY) if word not in (PAD, BOS, EOS)]
    longest = 2
    with torch.no_grad():
        found = search_with(
            partial(model.advance, state=model.start(Packed.from_sentences(SOURCES))),
            torch.full((len(SOURCES),), longest + 1),
            beam=len(words) ** longest,
            alpha=0.0,
        )

        def score(source: list[int], target: tuple[int, ...]) -> float:
            read = torch.tensor([BOS, *target])
            logits = decoder_only_logits(weights, TINY, torch.tensor(source), read)
            return float(logits.log_softmax(-1)[range(len(read)), [*target, EOS]].sum())

        for source, hypotheses in zip(SOURCES, found, strict=True):
            every = [target for length in range(longest + 1) for target in product(words, repeat=length)]
            best = max(every, key=lambda target: score(source, target))
            assert tuple(hypotheses[0].tokens) == best
            assert hypotheses[0].log_probability == pytest.approx(score(source, best), abs=1e-5)
