"""The operations of every backend, and whole models, against plain formulas in float64.

`test_triton.py` runs this file again in Triton's interpreter.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.config.model import DROPS, ModelConfig
from nmt.config.registry import CHOICES
from nmt.data.loader import MicroBatch
from nmt.model.activations import GELU, RELU, SWIGLU
from nmt.model.attention import AttentionSpec
from nmt.model.backends.chosen import backend
from nmt.model.backends.eager import Eager
from nmt.model.build import build_model
from nmt.model.dropout import Dropout, share_seed
from nmt.model.modules import LayerNorm, Linear, RMSNorm
from nmt.model.positions import RelativeKeys, sinusoids
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from tests.unit.model import reference
from tests.unit.model.backends import (
    BF16,
    CPU,
    FP32,
    INTERPRETED,
    NAMES,
    TOLERANCES,
    error_of,
    interpreted,
    random_numbers,
    relative_error,
    running,
    stream,
    using,
)  # fmt: skip

ROWS = 70
plain_only = pytest.mark.skipif(INTERPRETED, reason="does not depend on the kernels")


@pytest.fixture(params=NAMES)
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """Compute with each backend."""
    with running(request.param) as found:
        yield found


@pytest.fixture(params=[FP32, BF16], ids=["fp32", "bf16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    found: torch.dtype = request.param
    return found


def exactly(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    lengths: list[list[int]],
    causal: bool,
    bias: nn.Module | None = None,
) -> Tensor:
    """Return attention by the formula, one sentence and head at a time."""
    heads, shared = queries.shape[1], queries.shape[1] // keys.shape[1]
    sides = zip(queries.split(lengths[0]), keys.split(lengths[1]), values.split(lengths[1]), strict=True)
    outputs = []
    for of_queries, of_keys, of_values in sides:
        mixed = []
        for head in range(heads):
            query = of_queries[:, head]
            scores = query @ of_keys[:, head // shared].T / math.sqrt(query.shape[-1])
            if bias is not None:
                (vectors,) = bias.parameters()
                scores = scores + reference.relative_scores(vectors.double(), len(vectors) // 2, query)
            if causal:
                scores = scores + torch.full_like(scores, -torch.inf).triu(1)
            mixed.append(scores.softmax(-1) @ of_values[:, head // shared])
        outputs.append(torch.cat(mixed, -1))
    return torch.cat(outputs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads", "key_heads", "key_width", "value_width"), [(2, 2, 16, 16), (4, 2, 8, 40), (1, 1, 64, 48)]
)
@pytest.mark.parametrize("lengths", [[1, 15, 16, 0, 0], [3, 128, 64, 33], [3, 200]], ids=str)
def test_self_attention(
    lengths: list[int],
    heads: int,
    key_heads: int,
    key_width: int,
    value_width: int,
    causal: bool,
    device: torch.device,
    dtype: torch.dtype,
) -> None:
    if INTERPRETED and max(lengths) > 128:
        pytest.skip("flash attention needs a GPU")
    sentences, widths = stream(lengths), [heads * key_width, key_heads * key_width, key_heads * value_width]
    inputs = [random_numbers(sum(lengths), sum(widths)).to(dtype)]  # one product, as in a layer

    def parts(product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = backend().split(product, widths)
        counts = (heads, -1), (key_heads, -1), (key_heads, -1)
        return queries.unflatten(1, counts[0]), keys.unflatten(1, counts[1]), values.unflatten(1, counts[2])

    on_device = sentences.to(device)
    attend = backend().attention(AttentionSpec(on_device, on_device, causal, max(key_width, value_width), dtype))
    error = error_of(
        lambda product: attend(*parts(product)),
        lambda product: exactly(*parts(product), lengths=[lengths, lengths], causal=causal),
        inputs,
        device,
    )
    assert error < TOLERANCES[dtype]


def test_cross_attention(device: torch.device, dtype: torch.dtype) -> None:
    lengths = [[5, 1, 20, 0, 100], [40, 33, 2, 0, 7]]
    queries, keys = (stream(each).to(device) for each in lengths)
    inputs = [random_numbers(sum(each), 2, 16, seed=seed).to(dtype) for seed, each in enumerate([*lengths, lengths[1]])]
    attend = backend().attention(AttentionSpec(queries, keys, False, 16, dtype))
    error = error_of(attend, lambda *each: exactly(*each, lengths=lengths, causal=False), inputs, device)
    assert error < TOLERANCES[dtype]


@plain_only
def test_attention_with_a_bias(device: torch.device, dtype: torch.dtype) -> None:
    """Large scores, whose rounding to bf16 would be errors of several percent."""
    lengths, bias = [7, 1, 30, 16], RelativeKeys(ModelConfig(d_model=64, heads=4)).to(device)
    inputs = [(random_numbers(54, 4, 16, seed=seed) * scale).to(dtype) for seed, scale in enumerate((5, 1, 1))]
    sentences = stream(lengths).to(device)
    attend = backend().attention(AttentionSpec(sentences, sentences, True, 16, dtype, biased=True))
    error = error_of(
        lambda query, key, value: attend(query, key, value, bias.to(device)),
        lambda *each: exactly(*each, lengths=[lengths, lengths], causal=True, bias=bias.cpu()),
        inputs,
        device,
    )
    assert error < TOLERANCES[dtype]


@plain_only
@pytest.mark.parametrize("lengths", [[7, 1, 30], [16, 16]], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_fused_attention_in_fp16(causal: bool, lengths: list[int]) -> None:
    sentences = stream(lengths)
    attend = Eager().attention(AttentionSpec(sentences, sentences, causal, 8, torch.float16))
    inputs = [random_numbers(sum(lengths), heads, 8, seed=heads).half() for heads in (4, 2, 2)]
    exact = lambda *each: exactly(*each, lengths=[lengths, lengths], causal=causal)  # noqa: E731
    assert error_of(attend, exact, inputs) < 4e-3


@pytest.mark.parametrize("activation", [RELU, GELU, SWIGLU], ids=["relu", "gelu", "swiglu"])
@pytest.mark.parametrize("widths", [(64, 96), (24, 40)])
def test_feed_forward(widths: tuple[int, int], activation: object, device: torch.device, dtype: torch.dtype) -> None:
    used = {id(each): each for each in (RELU, GELU, SWIGLU)}[id(activation)]
    d_model, d_ff = widths
    rows = random_numbers(ROWS, d_model).to(dtype)
    weights = [random_numbers(d_ff * (1 + used.gated), d_model, seed=3) / 8, random_numbers(d_model, d_ff, seed=4) / 8]
    weights += [random_numbers(len(each), seed=5) for each in weights]
    given = [rows, *(each.to(dtype).float() for each in weights)]

    def ours(rows: Tensor, *weights: Tensor) -> Tensor:
        layers = [Linear(each.shape[1], each.shape[0], device=device) for each in weights[:2]]
        for layer, weight, bias in zip(layers, weights[:2], weights[2:], strict=True):
            del layer.weight, layer.bias
            layer.weight, layer.bias = weight, bias  # type: ignore[assignment]
            layer.copies = {"weight": weight.detach().to(dtype), "bias": bias.detach().to(dtype)}
        return backend().feed_forward(rows, layers[0], used, None, layers[1])

    def exact(rows: Tensor, first: Tensor, second: Tensor, first_bias: Tensor, second_bias: Tensor) -> Tensor:
        hidden = F.linear(rows, first, first_bias)
        if used.gated:
            gate, value = hidden.chunk(2, -1)
            hidden = gate * gate.sigmoid() * value
        else:
            hidden = F.gelu(hidden) if used is GELU else hidden.clamp(min=0)
        return F.linear(hidden, second, second_bias)

    assert error_of(ours, exact, given, device) < 2 * TOLERANCES[dtype]


def mask_of(dropout: Dropout, rows: int, width: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return the mask of a residual connection: what each coordinate is multiplied by."""
    torch.manual_seed(5)
    zeros, ones = (torch.full((rows, width), value, device=device, dtype=dtype) for value in (0.0, 1.0))
    return backend().residual(zeros, ones, dropout).double().cpu()


@pytest.mark.parametrize("kind", ["residual", "norm", "residual_norm", "residual_and_norm", "dropout"])
@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize(("rows", "width", "probability"), [(ROWS, 48, 0.25), (3, 24, 0.0)])
def test_residual_connections(
    rows: int, width: int, probability: float, rms: bool, kind: str, device: torch.device, dtype: torch.dtype
) -> None:
    if kind == "dropout" and (INTERPRETED or device.type == "cuda"):
        pytest.skip("drawn by PyTorch")
    dropout = Dropout(probability).to(device)
    dropout.site = 3
    kept = mask_of(dropout, rows, width, device, dtype)
    assert (kept == 0).double().mean() == pytest.approx(probability, abs=0.1)
    inputs = [random_numbers(rows, width, seed=seed).to(dtype) for seed in (1, 2)]
    inputs += [random_numbers(width, seed=3), *([] if rms else [random_numbers(width, seed=4)])]

    def with_all(result: Tensor, *inputs: Tensor) -> Tensor:
        """Let the result depend on all inputs."""
        return result + 0 * sum(each.sum() for each in inputs).to(result.dtype)  # type: ignore[union-attr]

    def ours(stream: Tensor, branch: Tensor, *parameters: Tensor) -> Tensor:
        torch.manual_seed(5)
        norm = RMSNorm(width, device=device) if rms else LayerNorm(width, device=device)
        for name, parameter in zip(("weight", "bias"), parameters, strict=False):
            delattr(norm, name)
            setattr(norm, name, parameter)
        results = {
            "residual": lambda: backend().residual(stream, branch, dropout),
            "norm": lambda: backend().norm(stream, norm),
            "dropout": lambda: backend().dropout(branch, dropout),
            "residual_norm": lambda: backend().residual_norm(stream, branch, dropout, norm),
            "residual_and_norm": lambda: torch.cat(backend().residual_and_norm(stream, branch, dropout, norm)),
        }
        return with_all(results[kind](), stream, branch, *parameters)

    def exact(stream: Tensor, branch: Tensor, *parameters: Tensor) -> Tensor:
        def normed(x: Tensor) -> Tensor:
            if rms:
                return x / (x.square().mean(-1, keepdim=True) + torch.finfo(FP32).eps).sqrt() * parameters[0]
            return F.layer_norm(x, (width,), parameters[0], parameters[1])

        added = stream + branch * kept
        results = {
            "residual": lambda: added,
            "norm": lambda: normed(stream),
            "dropout": lambda: branch * kept,
            "residual_norm": lambda: normed(added),
            "residual_and_norm": lambda: torch.cat([added, normed(added)]),
        }
        return with_all(results[kind](), stream, branch, *parameters)

    assert error_of(ours, exact, inputs, device) < TOLERANCES[dtype]


def test_rotation(device: torch.device, dtype: torch.dtype) -> None:
    table = sinusoids(33, 32).to(dtype)
    error = error_of(
        lambda product: backend().rotate(product[:, 32:96].unflatten(1, (2, 32)), table.to(device)),
        lambda product: rotated(product[:, 32:96].unflatten(1, (2, 32)), table.double()),
        [random_numbers(33, 128).to(dtype)],
        device,
    )
    assert error < TOLERANCES[dtype]


def rotated(heads: Tensor, table: Tensor) -> Tensor:
    """Multiply pairs of coordinates, read as complex numbers."""
    sine, cosine = table.unflatten(-1, (-1, 2)).unbind(-1)
    pairs = torch.view_as_complex(heads.contiguous().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.complex(cosine, sine)[:, None]).flatten(-2)


class Doubled(LayerNorm):
    """A norm of a user: a LayerNorm that computes something else."""

    def forward(self, stream: Tensor) -> Tensor:
        return 2 * super().forward(stream)


def test_subclasses_of_norms_compute_what_they_say(device: torch.device, dtype: torch.dtype) -> None:
    stream, branch = (random_numbers(ROWS, 48, seed=seed).to(device, dtype) for seed in (1, 2))
    dropout, results = Dropout(0.1).to(device), []
    for norm in (LayerNorm(48, device=device), Doubled(48, device=device)):
        torch.manual_seed(5)
        normed = backend().residual_norm(stream, branch, dropout, norm)
        _, also_normed = backend().residual_and_norm(stream, branch, dropout, norm)
        results.append(torch.cat([normed, also_normed]).detach().double().cpu())
    assert relative_error(results[1], 2 * results[0]) < TOLERANCES[dtype]


@pytest.mark.parametrize("words", [1, 5, 40, 9001])
def test_the_gradient_of_logits(words: int, device: torch.device, dtype: torch.dtype) -> None:
    logits, labels = (random_numbers(9, words) * 10).to(dtype), torch.arange(9) * 7 % words
    replaced = logits.to(device, copy=True)
    normaliser, label_logit = backend().softmax_gradient_(replaced, labels.to(device), 0.1)
    exact = logits.double()
    gradient = torch.softmax(exact, -1) - 0.9 * F.one_hot(labels, words)
    assert relative_error(replaced, gradient) < TOLERANCES[dtype]
    assert normaliser.dtype == label_logit.dtype == FP32
    assert relative_error(normaliser, exact.logsumexp(-1)) < 1e-6
    assert label_logit.double().cpu().equal(exact.gather(-1, labels[:, None])[:, 0])


def test_products_of_the_losses(device: torch.device, dtype: torch.dtype) -> None:
    left, right = random_numbers(96, 64).to(dtype), random_numbers(64, 160).to(dtype)
    exact = left.double() @ right.double()
    ours, on_device, tolerance = backend(), (left.to(device), right.to(device)), TOLERANCES[dtype]
    assert relative_error(ours.multiply(*on_device), exact) < tolerance
    assert relative_error(ours.multiply(on_device[0], on_device[1][:, :80]), exact[:, :80]) < tolerance
    assert relative_error(ours.exact_product(*on_device, FP32), exact) < tolerance


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_numbers_that_are_not_finite_stay_so(bad: float, device: torch.device, dtype: torch.dtype) -> None:
    for words, place in ((5, 0), (40, 39)):
        logits = torch.zeros(2, words, dtype=dtype, device=device)
        logits[1, place] = bad
        normaliser, _ = backend().softmax_gradient_(logits, torch.tensor([1, 2], device=device), 0.1)
        assert logits[0].isfinite().all()
        assert not logits[1].isfinite().any()
        assert normaliser.isfinite().tolist() == [True, False]
    sentences = stream([3, 1]).to(device)
    heads = torch.zeros(4, 1, 16, dtype=dtype, device=device)
    heads[3] = bad
    attended = backend().attention(AttentionSpec(sentences, sentences, False, 16, dtype))(heads, heads, heads)
    assert attended.isfinite().all(1).tolist() == [True, True, True, False]
    branch = torch.zeros(2, 16, dtype=dtype, device=device)
    branch[1] = bad
    norm, dropout = LayerNorm(16, device=device), Dropout(0.5).to(device)
    normed = backend().residual_norm(torch.zeros_like(branch), branch, dropout, norm)
    assert normed.isfinite().all(1).tolist() == [True, False]


SMALL = ModelConfig(layers=2, d_model=64, d_ff=128, heads=4, dropout=0.0)
MODELS = {
    "paper": SMALL,
    "modern": replace(SMALL, norm="rms", norm_placement="pre", activation="swiglu", positions="rotary", kv_heads=2),
    "narrow": replace(SMALL, d_model=24, d_ff=40, heads=2, norm_placement="pre"),
    "relative": replace(SMALL, positions="relative", norm_placement="pre"),
    "decoder-only": replace(SMALL, architecture="decoder_only", positions="alibi"),
}


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_the_loss_of_a_model_and_its_gradient(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    model = build_model(config, 30, 30)
    source, target = stream([5, 31, 1, 17]), stream([9, 1, 44, 8])
    batch = MicroBatch(source, target, torch.randint(4, 30, (62,)), np.arange(4))
    results = []
    for place, precision in ((device, dtype), (CPU, torch.float64)):
        copied = build_model(config, 30, 30)
        copied.load_state_dict(model.state_dict())
        copied = copied.double() if precision == torch.float64 else copied.to(place)
        with using(Eager() if precision == torch.float64 else backend()), WorkingWeights(copied, precision).active():
            loss = Objective(copied, 0.1)(batch.to(place)).smoothed
            gradients = torch.autograd.grad(loss, list(copied.parameters()), allow_unused=True)
        used = [each.flatten().cpu().double() for each in gradients if each is not None]
        results.append((loss.detach().cpu().double(), torch.cat(used)))
    (loss, gradient), (exact_loss, exact) = results
    assert abs(loss / exact_loss - 1) < (2e-6 if dtype == FP32 else 5e-3)
    assert relative_error(gradient, exact) < (2e-5 if dtype == FP32 else 8e-2)


DROPPING: list[Any] = [
    {"dropout": 0.4},
    {"dropout": 0.4, "norm_placement": "pre"},
    *(
        pytest.param({name: 0.5, "architecture": each}, marks=plain_only)
        for name in DROPS
        if name != "dropout"
        for each in CHOICES["model.architecture"]
    ),
]


@pytest.mark.parametrize("settings", DROPPING, ids=str)
def test_dropout_depends_on_the_seeds_of_a_micro_batch_only(settings: dict[str, Any], device: torch.device) -> None:
    torch.manual_seed(1)
    model = build_model(replace(SMALL, **settings), 30, 30).to(device)
    seed = share_seed(model.modules(), device)
    source = stream([5, 31]).to(device)
    outputs = []
    for value in (1, 2, 1):
        torch.manual_seed(value)
        seed.fill_(value)
        outputs.append(model(source, source).detach())
    assert torch.equal(outputs[0], outputs[2])
    assert not torch.equal(outputs[0], outputs[1])
    plain = build_model(replace(SMALL, **{**settings, **dict.fromkeys(DROPS, 0.0)}), 30, 30).to(device)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model.eval()(source, source), plain(source, source))


@plain_only
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_dropout_zeroes_the_given_share_and_keeps_the_mean(probability: float, device: torch.device) -> None:
    dropped = backend().dropout(torch.ones(1001, 999, device=device), Dropout(probability).to(device))
    assert (dropped == 0).double().mean().item() == pytest.approx(probability, abs=0.002)
    assert dropped.mean().item() == pytest.approx(1, abs=0.005)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - probability)])


def mix(word: int) -> int:
    word = ((word ^ (word >> 16)) * 0x7FEB352D) % (1 << 32)
    word = ((word ^ (word >> 15)) * 0x846CA68B) % (1 << 32)
    return word ^ (word >> 16)


@pytest.mark.skipif(not INTERPRETED, reason="masks of Triton's kernels")
@pytest.mark.parametrize("seed", [0, 5, -1, -(1 << 63), (1 << 63) - 1])
@pytest.mark.parametrize("site", [0, 1, 40])
def test_a_mask_is_a_function_of_seed_site_and_index_alone(seed: int, site: int) -> None:
    first = mix(seed % (1 << 32) ^ mix(site))
    second = mix((seed >> 32) % (1 << 32) ^ first)
    bits = [mix(mix(index ^ first) ^ second) >> 1 for index in range(60)]
    expected = torch.tensor([each >= round(0.3 * (1 << 31)) for each in bits]).view(3, 20).double() / 0.7
    dropout = Dropout(0.3)
    dropout.seed, dropout.site = torch.tensor([seed]), site
    with using(interpreted()):
        torch.testing.assert_close(mask_of(dropout, 3, 20, CPU, FP32), expected, rtol=1e-6, atol=0)
