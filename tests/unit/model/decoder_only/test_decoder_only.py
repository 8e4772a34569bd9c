"""The decoder-only model against a plain implementation, exhaustive search, and a task that it must learn."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.config.training import TrainingConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.errors import ConfigError
from nmt.estimate.parameters import count_parameters, training_flops
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS, PAD
from nmt.training.trainer import Trainer
from tests.unit.decoding.toys import search_with
from tests.unit.model import reference
from tests.unit.model.reference import model_with

TINY = ModelConfig(architecture="decoder_only", layers=2, d_model=16, d_ff=24, heads=4, dropout=0.0)
VOCABULARY = 11
CONFIGS = {
    "sinusoidal": TINY,
    "untied": replace(TINY, tie_embeddings=False, norm_placement="pre"),
    **{
        name: model_with(TINY, positions=name, kv_heads=2)
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
@pytest.mark.parametrize("pairs", [[0, 1, 2, 3], [0], [3, 3]])
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


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_token_at_a_time_equals_all_at_once(config: ModelConfig) -> None:
    """Rows are reordered, and sentence 1 leaves, on the way."""
    model = build(config).eval()
    state = model.start(Packed.from_sentences(SOURCES))
    owners, prefixes = list(range(4)), [list[int]() for _ in SOURCES]
    random = torch.Generator().manual_seed(3)
    for step in range(24):
        rows = 3 if step else 1
        kept = [owner for owner in dict.fromkeys(owners) if step < 5 or owner != 1]
        parents = [
            owners.index(owner) + int(torch.randint(owners.count(owner), (), generator=random))
            for owner in kept
            for _ in range(rows)
        ]
        tokens = torch.randint(VOCABULARY, (len(parents),), generator=random)
        owners = [owners[parent] for parent in parents]
        prefixes = [[*prefixes[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        with torch.no_grad():
            scores = model.advance(tokens, torch.tensor(parents), state)
            source = Packed.from_sentences([SOURCES[owner] for owner in owners])
            full = model.logits(model(source, Packed.from_sentences(prefixes))).unflatten(0, (len(owners), -1))
        torch.testing.assert_close(scores, full[:, -1], rtol=1e-9, atol=1e-9)


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


def test_attention_maps_are_blocks_of_one_stream() -> None:
    model = build(TINY)
    (maps,) = model.attention(Packed.from_sentences([SOURCES[0]]), Packed.from_sentences([TARGETS[3]]))
    assert [tuple(part.shape) for part in maps] == [(2, 4, 4, 4), (2, 4, 3, 3), (2, 4, 3, 4)]
    torch.testing.assert_close(maps.encoder.sum(-1), torch.ones(2, 4, 4, dtype=torch.float64))
    torch.testing.assert_close(maps.decoder.sum(-1) + maps.cross.sum(-1), torch.ones(2, 4, 3, dtype=torch.float64))
    assert not maps.encoder.triu(1).any()
    assert not maps.decoder.triu(1).any()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_size_and_operations_follow_the_formulas(config: ModelConfig) -> None:
    counts = dict.fromkeys(("embedding", "encoder", "decoder"), 0)
    for name, parameter in build(config).named_parameters():
        counts["decoder" if name.startswith("decoder") else "embedding"] += parameter.numel()
    size = count_parameters(config, VOCABULARY, VOCABULARY)
    assert size._asdict() == counts
    assert training_flops(size, 1000, 30, 20) == 6 * (50 * size.decoder + 20 * 1000)


def batch(seed: int) -> GlobalBatch:
    random = np.random.default_rng(seed)
    sentences = [random.permutation(np.arange(4, VOCABULARY))[: random.integers(2, 5)].tolist() for _ in range(48)]
    source = Packed.from_sentences([[*sentence, EOS] for sentence in sentences])
    target = Packed.from_sentences([[BOS, *sentence] for sentence in sentences])
    micro = MicroBatch(source, target, source.tokens, np.arange(len(sentences)))
    return GlobalBatch([micro], len(source.tokens), 2 * len(source.tokens), DataPosition())


def test_learns_to_copy() -> None:
    torch.manual_seed(1)
    config = replace(TINY, d_model=48, d_ff=96, layers=2, norm_placement="pre")
    model = build_model(config, VOCABULARY, VOCABULARY)
    training = TrainingConfig(batch_tokens=1000, learning_rate=5e-3, warmup_steps=20, label_smoothing=0.0)
    trainer = Trainer(model, training, Machine(torch.device("cpu"), torch.float32), seed=1)
    for seed in range(200):
        trainer.update(batch(seed))
    model.eval()
    sources = [[5, 9, 4], [10, 6], [7, 5, 8, 4]]
    with torch.no_grad():
        scorer = partial(model.advance, state=model.start(Packed.from_sentences([[*each, EOS] for each in sources])))
        found = search_with(scorer, torch.full((3,), 8), beam=3, alpha=0.6)
    assert [hypotheses[0].tokens for hypotheses in found] == sources


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"positions": "learned"}, "model.positions=learned"),
        ({"encoder_layers": 2}, "has no encoder"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        model_with(TINY, **settings)
