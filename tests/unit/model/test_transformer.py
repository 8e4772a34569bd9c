"""The model against a plain implementation of the paper, in float64."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.model.build import build_model
from nmt.model.layers import DecoderLayer
from nmt.model.packed import Packed
from nmt.model.positions import Places, SinusoidTable, sinusoids
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
}
LENGTHS = {"many": ([5, 1, 9, 3], [4, 7, 1, 6]), "like": ([6, 6, 6], [5, 5, 5]), "one": ([4], [8])}


def sentences(lengths: list[int], seed: int) -> list[list[int]]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randint(VOCABULARY, (length,), generator=random).tolist() for length in lengths]


def build(config: ModelConfig) -> Transformer:
    torch.manual_seed(1)
    model = build_model(config, VOCABULARY, VOCABULARY).double()
    assert isinstance(model, Transformer)
    for parameter in model.parameters():  # biases and gains too, which start at 0 and 1
        torch.nn.init.normal_(parameter, std=0.3)
    return model


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


def test_the_encoder_equals_torchs_encoder_layer() -> None:
    config = replace(TINY, layers=1, dropout=0.0)
    model = build(config)
    peer = torch.nn.TransformerEncoderLayer(
        config.d_model, config.heads, config.d_ff, dropout=0.0, batch_first=True, dtype=torch.float64
    )
    weights = dict(model.named_parameters())
    names = {
        "self_attn.in_proj_weight": "attention.query_key_value.weight",
        "self_attn.in_proj_bias": "attention.query_key_value.bias",
        "self_attn.out_proj.weight": "attention.output.weight",
        "self_attn.out_proj.bias": "attention.output.bias",
        "linear1.weight": "feed_forward.inner.weight",
        "linear1.bias": "feed_forward.inner.bias",
        "linear2.weight": "feed_forward.outer.weight",
        "linear2.bias": "feed_forward.outer.bias",
        "norm1.weight": "attention_residual.norm.weight",
        "norm1.bias": "attention_residual.norm.bias",
        "norm2.weight": "feed_forward_residual.norm.weight",
        "norm2.bias": "feed_forward_residual.norm.bias",
    }
    peer.load_state_dict({theirs: weights[f"encoder.0.{ours}"] for theirs, ours in names.items()})
    source = Packed.from_sentences(sentences([7], 5))
    stream = model.embed("source", source.tokens, Places(source.positions, source.longest))
    torch.testing.assert_close(model.encode(source), peer(stream[None])[0], rtol=1e-10, atol=1e-10)


def test_the_output_of_a_sentence_does_not_depend_on_its_batch() -> None:
    model = build(TINY)
    sources, targets = sentences([5, 2, 9], 7), sentences([3, 8, 4], 8)
    together = model(Packed.from_sentences(sources), Packed.from_sentences(targets))
    alone = [
        model(Packed.from_sentences([s]), Packed.from_sentences([t])) for s, t in zip(sources, targets, strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-12, atol=1e-12)


def test_no_token_sees_a_later_one() -> None:
    model = build(TINY)
    source, target = sentences([5], 1), sentences([6], 2)
    changed = [[*target[0][:4], (target[0][4] + 1) % VOCABULARY, target[0][5]]]
    before, after = (model(Packed.from_sentences(source), Packed.from_sentences(t)) for t in (target, changed))
    torch.testing.assert_close(before[:4], after[:4], rtol=0, atol=0)
    assert not torch.allclose(before[4], after[4])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_decoding_token_by_token_equals_the_full_forward_pass(config: ModelConfig) -> None:
    model = build(config).eval()
    source, targets = Packed.from_sentences(sentences([5, 1, 9, 3], 2)), sentences([20] * 4, 3)
    with torch.no_grad():
        expected = model.logits(model(source, Packed.from_sentences(targets))).unflatten(0, (4, 20))
        state = model.start(source)
        for step in range(20):
            tokens = torch.tensor([target[step] for target in targets])
            scores = model.advance(tokens, torch.arange(4), state)
            torch.testing.assert_close(scores, expected[:, step], rtol=1e-9, atol=1e-9)


def test_training_and_decoding_run_the_same_layers() -> None:
    model = build(TINY).eval()
    source, target = Packed.from_sentences(sentences([5], 2)), Packed.from_sentences([[4]])
    outputs: list[Tensor] = []
    layer = cast(DecoderLayer, model.decoder[1])
    layer.register_forward_hook(lambda _, arguments, output: outputs.append(output))
    with torch.no_grad():
        model(source, target)
        model.advance(torch.tensor([4]), torch.arange(1), model.start(source))
    torch.testing.assert_close(*outputs, rtol=1e-10, atol=1e-10)


def test_the_kv_cache_follows_rows_that_are_added_reordered_and_dropped() -> None:
    model = build(TINY).eval()
    sources, prefixes = sentences([5, 4, 9], 2), sentences([3, 3, 3, 3], 3)
    source = Packed.from_sentences(sources)
    with torch.no_grad():
        state = model.start(source)
        first = torch.tensor([1, 2, 3])
        model.advance(first, torch.arange(3), state)
        second = torch.tensor([4, 5, 6, 7, 8, 9])
        model.advance(second, torch.tensor([0, 0, 1, 1, 2, 2]), state)  # two rows a sentence
        third = torch.tensor([10, 11, 12, 13])
        scores = model.advance(third, torch.tensor([1, 0, 5, 5]), state)  # sentence 1 leaves, rows change places
        prefixes = [[1, 5, 10], [1, 4, 11], [3, 9, 12], [3, 9, 13]]
        owners = [0, 0, 2, 2]
        expected = [
            model.logits(model(Packed.from_sentences([sources[owner]]), Packed.from_sentences([prefix])))[-1]
            for owner, prefix in zip(owners, prefixes, strict=True)
        ]
    torch.testing.assert_close(scores, torch.stack(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["paper", "shared keys", "wide values", *CHOICES["model.positions"]])
def test_rows_with_a_long_common_prefix_attend_only_to_their_own_tokens(name: str) -> None:
    model, random = build(CONFIGS[name]).eval(), torch.Generator().manual_seed(4)
    sources = sentences([5, 18, 2, 9, 7], 2)
    owners, prefixes = list(range(5)), [list[int]() for _ in sources]
    state = model.start(Packed.from_sentences(sources))
    for step in range(26):
        rows = 3 if step else 1
        kept = list(dict.fromkeys(owners))
        if step in (7, 8, 20):  # a sentence leaves
            kept.pop(step % len(kept))
        parents = [
            int(torch.randint(owners.count(owner), (), generator=random)) + owners.index(owner)
            for owner in kept
            for _ in range(rows)
        ]
        tokens = torch.randint(VOCABULARY, (len(parents),), generator=random)
        owners = [owners[parent] for parent in parents]
        prefixes = [[*prefixes[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        with torch.no_grad():
            scores = model.advance(tokens, torch.tensor(parents), state)
        if step % 6 == 1:
            source = Packed.from_sentences([sources[owner] for owner in owners])
            full = model.logits(model(source, Packed.from_sentences(prefixes))).unflatten(0, (len(owners), -1))
            torch.testing.assert_close(scores, full[:, -1], rtol=1e-9, atol=1e-9)


def test_sinusoids_follow_the_formula() -> None:
    table = sinusoids(50, 12)
    for position in (0, 1, 49):
        for i in range(6):
            angle = position / 10_000 ** (2 * i / 12)
            assert table[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


def test_the_sinusoid_table_grows_for_longer_sentences() -> None:
    model = build(TINY)
    short, long = sentences([3], 1), sentences([700], 2)
    model.encode(Packed.from_sentences(short))
    assert model.encode(Packed.from_sentences(long)).isfinite().all()


def test_training_can_use_the_sinusoid_table_that_inference_made() -> None:
    table = SinusoidTable(8)
    with torch.inference_mode():
        table(Places(torch.arange(3), 3), torch.float32)
    assert not table.table.is_inference()


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


def test_initial_logits_have_the_right_scale() -> None:
    """Fresh weights give scores of about unit size: neither saturated nor dead."""
    torch.manual_seed(0)
    model = build_model(replace(TINY, d_model=64, heads=4, d_ff=128), 500, 500)
    scores = model.logits(model(Packed.from_sentences([[5, 6, 7, 8]]), Packed.from_sentences([[9, 10, 11]])))
    assert 0.2 < scores.std() < 5


def test_sinusoids_do_not_change_while_other_threads_use_the_table() -> None:
    """The race: one thread replaces the table by a shorter one of another precision while another indexes it."""
    table = SinusoidTable(8)

    def rows(job: int) -> Tensor:
        length, dtype = (3000, torch.float64) if job % 2 else (10, torch.float32)
        found = [table(Places(torch.arange(length), length), dtype) for _ in range(20)]
        assert {(each.shape, each.dtype) for each in found} == {((length, 8), dtype)}
        return found[-1]

    with ThreadPoolExecutor(8) as threads:
        for job, found in enumerate(threads.map(rows, range(32))):
            torch.testing.assert_close(found, sinusoids(len(found), 8).to(found.dtype), msg=str(job))
