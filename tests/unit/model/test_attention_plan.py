"""Which attention a batch gets, for each value of `runtime.attention`."""

from dataclasses import replace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.model import attention_plan
from nmt.model.attention import FlashAttend, PaddedAttend, ShortAttend
from nmt.model.attention_plan import AttentionSpec, plan_attention, plan_for
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


@pytest.mark.parametrize(
    ("kind", "device", "precision", "config", "message"),
    [
        ("flash", "cpu", torch.float32, SMALL, "runtime.attention=flash needs a GPU that computes in bf16"),
        ("short", "cuda", torch.float32, SMALL, "runtime.attention=short needs a GPU that computes in bf16"),
        ("flash", "cuda", torch.bfloat16, replace(SMALL, positions="alibi"), "the bias of model.positions=alibi"),
        ("short", "cuda", torch.bfloat16, replace(SMALL, d_k=65), "heads of at most 64"),
        (
            "short",
            "cuda",
            torch.bfloat16,
            replace(SMALL, architecture="decoder_only", prefix_attention=True),
            "has no model.prefix_attention",
        ),
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
    monkeypatch.setattr(attention_plan, "has_triton", lambda: False)
    with pytest.raises(UserError, match="needs the package triton"):
        plan_for("short", "cuda", torch.bfloat16, SMALL)


@pytest.mark.parametrize("kind", ["auto", "padded"])
def test_a_cpu_accepts_padded_attention(kind: str) -> None:
    plan = plan_for(kind, "cpu", torch.float32, SMALL)
    sentences = Packed.from_sentences([[1, 2], [3]])
    chosen = plan(AttentionSpec(sentences, sentences, causal=True, head_width=16, precision=torch.float32))
    assert type(chosen) is PaddedAttend
