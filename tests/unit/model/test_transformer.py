"""The model against a plain implementation of the paper, in float64."""

from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.model import positions
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.layers import DecoderLayer
from nmt.model.packed import Packed
from nmt.model.transformer import Transformer
from tests.unit.model import reference

TINY = ModelConfig(layers=2, d_model=16, d_ff=24, heads=4, dropout=0.0, max_positions=32)
VOCABULARY = 23
CONFIGS = {
    "paper": TINY,
    "one head": replace(TINY, heads=1),
    "narrow keys": replace(TINY, d_k=2),
    "wide values": replace(TINY, d_v=6),
    "untied": replace(TINY, tie_embeddings=False),
    **{name: replace(TINY, positions=name, kv_heads=2, d_k=6) for name in CHOICES["model.positions"]},
    "deep encoder": replace(TINY, encoder_layers=3, decoder_layers=1),
    "deep decoder": replace(TINY, decoder_layers=3, norm_placement="pre"),
    "pre-norm": replace(TINY, norm_placement="pre"),
    "rms": replace(TINY, norm="rms"),
    "gelu": replace(TINY, activation="gelu"),
    "swiglu": replace(TINY, activation="swiglu"),
    "shared keys": replace(TINY, kv_heads=2),
    **{
        f"decoder-only {name}": replace(TINY, architecture="decoder_only", positions=name, kv_heads=2, d_k=6)
        for name in CHOICES["model.positions"]
        if name != "learned"
    },
    "decoder-only untied": replace(TINY, architecture="decoder_only", tie_embeddings=False, norm_placement="pre"),
}
LENGTHS = {"many": ([5, 1, 9, 3], [4, 7, 1, 6]), "like": ([6, 6, 6], [5, 5, 5])}


def sentences(lengths: list[int], seed: int) -> list[list[int]]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randint(VOCABULARY, (length,), generator=random).tolist() for length in lengths]


def build(config: ModelConfig) -> TranslationModel:
    torch.manual_seed(1)
    model = build_model(config, VOCABULARY, VOCABULARY).double()
    for parameter in model.parameters():  # biases and gains too, which start at 0 and 1
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def test_distances_beyond_the_largest_one_are_all_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "MAX_DISTANCE", 3)
    test_logits_and_gradients_equal_the_plain_implementation(CONFIGS["relative"], LENGTHS["many"])


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_logits_and_gradients_equal_the_plain_implementation(
    config: ModelConfig, lengths: tuple[list[int], list[int]]
) -> None:
    model = build(config)
    sources, targets = sentences(lengths[0], 2), sentences(lengths[1], 3)
    scores = model.logits(model(Packed.from_sentences(sources), Packed.from_sentences(targets)))
    weights: dict[str, Tensor] = {
        name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()
    }
    expected = torch.cat(
        [
            reference.logits(weights, config, torch.tensor(source), torch.tensor(target))
            for source, target in zip(sources, targets, strict=True)
        ]
    )
    torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-10)

    pull = torch.randn_like(scores)
    scores.backward(pull)
    expected.backward(pull)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, weights[name].grad, rtol=1e-9, atol=1e-9, msg=name)


def test_no_token_sees_a_later_one() -> None:
    model = build(TINY)
    source, target = sentences([5], 1), sentences([6], 2)
    changed = [[*target[0][:4], (target[0][4] + 1) % VOCABULARY, target[0][5]]]
    before, after = (model(Packed.from_sentences(source), Packed.from_sentences(t)) for t in (target, changed))
    torch.testing.assert_close(before[:4], after[:4], rtol=0, atol=0)
    assert not torch.allclose(before[4], after[4])


@pytest.mark.parametrize(("vocabulary", "millions"), [(37_000, 63.1), (41_000, 65.1)])
def test_the_base_model_has_the_expected_number_of_parameters(vocabulary: int, millions: float) -> None:
    with torch.device("meta"):
        model = build_model(ModelConfig(), vocabulary, vocabulary)
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)


def test_the_order_of_the_parameters_is_fixed() -> None:
    """Saved optimizer states know parameters by their order."""
    model = build_model(replace(TINY, tie_embeddings=False, positions="learned"), VOCABULARY, VOCABULARY)
    first = ["source_positions", "target_positions", "vectors.projection", "vectors.source", "vectors.target"]
    assert [name for name, _ in model.named_parameters()][:5] == first


def test_initial_weights_have_the_scale_that_the_settings_choose() -> None:
    """Glorot's bound for each product on its own, vectors of length one; or all of them small."""
    torch.manual_seed(0)
    wide = replace(TINY, d_model=64, heads=4, d_ff=256)
    glorot, small = (build_model(replace(wide, initialization=name), 500, 500) for name in ("glorot", "small"))
    assert isinstance(glorot, Transformer)
    layer = cast(DecoderLayer, glorot.decoder[0])
    for part in layer.attention.query_key_value.weight.split(64):
        assert part.abs().max().item() == pytest.approx((6 / (64 + 64)) ** 0.5, rel=0.01)
    assert layer.feed_forward.inner.weight.abs().max().item() == pytest.approx((6 / (64 + 256)) ** 0.5, rel=0.01)
    assert glorot.projection.norm(dim=1).mean().item() == pytest.approx(1, rel=0.05)
    for name, parameter in small.named_parameters():
        if parameter.dim() > 1:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.05), name
        else:
            assert torch.equal(parameter, torch.full_like(parameter, float("norm.weight" in name))), name
