"""Which attention a batch gets, for each value of `runtime.attention`."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.config.model import ModelConfig
from nmt.errors import UserError
from nmt.model import attention_choice
from nmt.model.attention import Attend, FlashAttend, PaddedAttend, ShortAttend, attention_scores
from nmt.model.attention_choice import plan_for
from nmt.model.attention_plan import AttentionSpec, plan_attention
from nmt.model.fused_attention import FusedPaddedAttend
from nmt.model.packed import Packed

MODE = FakeTensorMode()
SMALL = ModelConfig(d_model=32, heads=2, d_ff=32)


def stream(longest: int, device: str = "cuda") -> Packed:
    """Return two sentences that exist in name only, so that they can be on a GPU that is not there."""
    with MODE:
        tokens = torch.empty(2 * longest, dtype=torch.int64, device=device)
        return Packed(tokens, tokens, torch.empty(3, dtype=torch.int32, device=device), longest)


@pytest.mark.parametrize(
    ("kind", "longest", "expected"),
    [
        ("auto", 20, FlashAttend),
        ("padded", 20, PaddedAttend),
        ("flash", 20, FlashAttend),
        ("short", 20, ShortAttend),
        ("short", 128, ShortAttend),
        ("short", 129, FlashAttend),
    ],
)
def test_setting_chooses_attention_on_a_gpu(kind: str, longest: int, expected: type) -> None:
    sentences = stream(longest)
    with MODE:
        chosen = plan_attention(AttentionSpec(sentences, sentences, False, 16, torch.bfloat16), kind)
    assert type(chosen) is expected


def test_short_attention_needs_both_sides_to_be_short() -> None:
    with MODE:
        for queries, keys in ((20, 129), (129, 20)):
            chosen = plan_attention(AttentionSpec(stream(queries), stream(keys), False, 16, torch.bfloat16), "short")
            assert type(chosen) is FlashAttend


@pytest.mark.parametrize("kind", ["auto", "flash", "short"])
def test_float32_and_biased_scores_use_padded_blocks(kind: str) -> None:
    sentences = stream(20)
    with MODE:
        exact = plan_attention(AttentionSpec(sentences, sentences, False, 16, torch.float32), kind)
        biased = plan_attention(AttentionSpec(sentences, sentences, False, 16, torch.bfloat16, biased=True), kind)
    assert type(exact) is type(biased) is PaddedAttend


@pytest.mark.parametrize("causal", [True, False])
def test_short_attention_equals_padded_attention(causal: bool) -> None:
    torch.manual_seed(1)
    sentences = Packed.from_sentences([[5] * 7, [6], [7] * 30])
    queries, keys, values = (torch.randn(38, heads, 8, requires_grad=True) for heads in (4, 2, 2))
    short = ShortAttend(sentences, sentences, causal=causal)(queries, keys, values)
    padded = PaddedAttend(sentences, sentences, causal=causal)(queries, keys, values)
    torch.testing.assert_close(short, padded)
    upstream = torch.randn_like(padded)
    torch.testing.assert_close(
        torch.autograd.grad(short, [queries, keys, values], upstream),
        torch.autograd.grad(padded, [queries, keys, values], upstream),
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("lengths", [[7, 1, 30], [16, 16], [3]], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float16, 4e-3)])
def test_fused_attention_equals_padded_attention(
    causal: bool, lengths: list[int], dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(1)
    queries = Packed.from_sentences([[5] * length for length in lengths])
    keys = queries if causal else Packed.from_sentences([[5] * (2 * length + 1) for length in lengths])
    shapes = (sum(lengths), 4, 8), (len(keys.tokens), 2, 8), (len(keys.tokens), 2, 8)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    upstream = torch.randn(sum(lengths), 4 * 8, dtype=torch.float64)

    def results(attend: Attend, numbers: torch.dtype) -> list[Tensor]:
        given = [each.detach().to(numbers).requires_grad_() for each in inputs]
        attended = attend(given[0], given[1], given[2])
        return [attended, *torch.autograd.grad(attended, given, upstream.to(numbers))]

    found = results(FusedPaddedAttend(queries, keys, causal=causal, precision=dtype), dtype)
    expected = results(PaddedAttend(queries, keys, causal=causal), torch.float64)
    assert {each.dtype for each in found} == {dtype}
    torch.testing.assert_close([each.double() for each in found], expected, rtol=tolerance, atol=tolerance)


def test_scores_are_scaled_before_they_overflow_in_fp16() -> None:
    heads = torch.full((1, 1, 2, 64), 60.0, dtype=torch.float16)  # the product is 230,400, and fp16 ends at 65,504
    assert attention_scores(heads, heads).tolist() == [[[[28_800.0] * 2] * 2]]


@pytest.mark.parametrize(
    ("kind", "device", "precision", "config", "message"),
    [
        ("flash", "cpu", torch.float32, SMALL, "runtime.attention=flash needs a GPU of NVIDIA that computes in bf16"),
        ("flash", "cuda", torch.float16, SMALL, "runtime.attention=flash needs a GPU of NVIDIA that computes in bf16"),
        ("short", "cuda", torch.float32, SMALL, "runtime.attention=short needs a GPU of NVIDIA that computes in bf16"),
        ("short", "cuda", torch.bfloat16, replace(SMALL, d_k=65), "heads of at most 64"),
    ],
)
def test_impossible_attention_is_refused(
    kind: str, device: str, precision: torch.dtype, config: ModelConfig, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        plan_for(kind, device, precision, config)
    assert "use runtime.attention=auto" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_short_attention_without_triton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_choice, "has_triton", lambda: False)
    with pytest.raises(UserError, match="needs the package triton"):
        plan_for("short", "cuda", torch.bfloat16, SMALL)


@pytest.mark.parametrize("kind", ["auto", "padded"])
def test_a_cpu_accepts_padded_attention(kind: str) -> None:
    plan = plan_for(kind, "cpu", torch.float32, SMALL)
    sentences = Packed.from_sentences([[1, 2], [3]])
    chosen = plan(AttentionSpec(sentences, sentences, causal=True, head_width=16, precision=torch.float32))
    assert type(chosen) is PaddedAttend
