"""Each way to attend, compared with the paper's formula in float64, sentence by sentence, on the same inputs.

Scores and softmax must be in float32: scores up to 20 that are rounded to bf16 make errors of several percent.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.model.attention import Attend, AttendInC, PaddedAttend, RecordingAttend, ShortAttend
from nmt.model.cpu.dropout import dropout_mask
from nmt.model.fused_attention import FusedPaddedAttend
from nmt.model.kernels.c import library
from nmt.model.packed import Packed
from nmt.model.positions.alibi import DistancePenalty
from nmt.model.positions.base import Places, ScoreBias
from nmt.model.positions.relative import RelativeKeys
from nmt.model.positions.rotary import Rotary
from tests.operation_errors import TOLERANCES, largest, relative_error
from tests.unit.model.reference import distance_penalty, relative_scores, turned

HEADS, WIDTH = 4, 16
QUERY_LENGTHS, KEY_LENGTHS = [7, 1, 30, 16], [9, 31, 2, 16]
PREFIXES = [3, 1, 12, 16]
DROPOUT = 0.3
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
"""Rounding results and gradients once to bf16 is an error of 2e-3; rounded scores make ten times as much."""
OWN_ROUNDING = 3e-3

Scores = Callable[[int, Tensor], Tensor]
"""Returns what is added to the scores of a head, given its queries."""


def inputs(queries: int, keys: int, dtype: torch.dtype) -> list[Tensor]:
    """Return queries, whose scores reach 20, keys and values."""
    random = torch.Generator().manual_seed(1)
    shapes = [(queries, HEADS, WIDTH), *2 * [(keys, HEADS, WIDTH)]]
    made = [torch.randn(shape, generator=random) for shape in shapes]
    return [(made[0] * 5).to(dtype), *(each.to(dtype) for each in made[1:])]


def exactly(
    tensors: Sequence[Tensor],
    lengths: tuple[list[int], list[int]],
    *,
    causal: bool = False,
    bias: Scores | None = None,
    prefixes: list[int] | None = None,
    kept: Tensor | None = None,
    weights: list[Tensor] | None = None,
) -> Tensor:
    """Return the attention of each sentence and head by the formula."""
    sides = zip(tensors[0].split(lengths[0]), *(each.split(lengths[1]) for each in tensors[1:]), strict=True)
    outputs = []
    for sentence, (queries, keys, values) in enumerate(sides):
        of_heads = []
        for head in range(HEADS):
            scores = queries[:, head] @ keys[:, head].T / math.sqrt(WIDTH)
            if bias is not None:
                scores = scores + bias(head, queries[:, head])
            if causal:
                future = torch.full_like(scores, -torch.inf).triu(1)
                future[:, : prefixes[sentence] if prefixes else 0] = 0
                scores = scores + future
            found = scores.softmax(-1)
            if weights is not None:
                weights.append(found)
            if kept is not None:
                rows, columns = scores.shape
                found = found * kept[sentence, head, :rows, :columns] / (1 - DROPOUT)
            of_heads.append(found @ values[:, head])
        outputs.append(torch.cat(of_heads, -1))
    return torch.cat(outputs)


def error_of(ours: Callable[..., Tensor], exact: Callable[..., Tensor], given: Sequence[Tensor]) -> float:
    """Return the largest relative error of the result and of the gradients of the inputs."""
    results = []
    for function, dtype in ((ours, None), (exact, torch.float64)):
        leaves = [each.detach().to(dtype or each.dtype).requires_grad_() for each in given]
        output = function(leaves)
        pull = torch.randn(output.shape, generator=torch.Generator().manual_seed(2)).to(given[0].dtype)
        results.append([output, *torch.autograd.grad(output, leaves, pull.to(output.dtype))])
    return largest(relative_error(found, expected) for found, expected in zip(*results, strict=True))


def stream(lengths: list[int]) -> Packed:
    return Packed.from_sentences([[7] * length for length in lengths])


def limit(dtype: torch.dtype) -> float:
    return TOLERANCES[dtype] if dtype == torch.float32 else OWN_ROUNDING


@DTYPES
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["padded", "recorded"])
def test_padded_attention_to_the_same_and_to_another_stream(kind: str, causal: bool, dtype: torch.dtype) -> None:
    lengths = QUERY_LENGTHS, QUERY_LENGTHS if causal else KEY_LENGTHS
    sides = [stream(each) for each in lengths]
    maps, expected = list[Tensor](), list[Tensor]()
    attend: Attend = PaddedAttend(*sides, causal=causal)
    if kind == "recorded":
        attend = RecordingAttend(*sides, causal=causal, weights=maps)
    exact = partial(exactly, lengths=lengths, causal=causal, weights=expected)
    given = inputs(sum(lengths[0]), sum(lengths[1]), dtype)
    assert error_of(lambda each: attend(*each), exact, given) < limit(dtype)
    if kind == "recorded":
        heads = [(sentence, head) for sentence in range(len(lengths[0])) for head in range(HEADS)]
        for (sentence, head), weights in zip(heads, expected, strict=True):
            rows, columns = weights.shape
            assert relative_error(maps[0][sentence, head, :rows, :columns], weights) < 1e-5


@DTYPES
@pytest.mark.parametrize("positions", ["alibi", "relative"])
def test_biased_scores(positions: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    config = ModelConfig(d_model=HEADS * WIDTH, heads=HEADS, positions=positions)
    bias: ScoreBias = DistancePenalty() if positions == "alibi" else RelativeKeys(config)

    def added(head: int, queries: Tensor) -> Tensor:
        if positions == "alibi":
            return distance_penalty(head, HEADS, len(queries))
        (vectors,) = bias.parameters()
        return relative_scores(vectors.detach().double(), len(vectors) // 2, queries)

    sentences = stream(QUERY_LENGTHS)
    attend = PaddedAttend(sentences, sentences, causal=True)
    exact = partial(exactly, lengths=(QUERY_LENGTHS, QUERY_LENGTHS), causal=True, bias=added)
    given = inputs(sum(QUERY_LENGTHS), sum(QUERY_LENGTHS), dtype)
    assert error_of(lambda each: attend(each[0], each[1], each[2], bias), exact, given) < limit(dtype)


@DTYPES
def test_prefixes(dtype: torch.dtype) -> None:
    sentences = stream(QUERY_LENGTHS)
    attend = PaddedAttend(sentences, sentences, causal=True, prefix=torch.tensor(PREFIXES))
    exact = partial(exactly, lengths=(QUERY_LENGTHS, QUERY_LENGTHS), causal=True, prefixes=PREFIXES)
    given = inputs(sum(QUERY_LENGTHS), sum(QUERY_LENGTHS), dtype)
    assert error_of(lambda each: attend(*each), exact, given) < limit(dtype)


@DTYPES
def test_dropped_weights(dtype: torch.dtype) -> None:
    sentences, drawn = stream(QUERY_LENGTHS), list[Tensor]()

    def draw(like: Tensor, share: float) -> Tensor:
        drawn.append(dropout_mask(like, share))
        return drawn[-1]

    def exact(tensors: Sequence[Tensor]) -> Tensor:
        return exactly(tensors, (QUERY_LENGTHS, QUERY_LENGTHS), kept=drawn[0].double())

    attend = PaddedAttend(sentences, sentences, causal=False, dropout=DROPOUT)
    given = inputs(sum(QUERY_LENGTHS), sum(QUERY_LENGTHS), dtype)
    with patch("nmt.model.attention.dropout_mask", draw):
        assert error_of(lambda each: attend(*each), exact, given) < limit(dtype)


@DTYPES
@pytest.mark.parametrize("path", ["complex", "device", "c"])
def test_rotary_positions_are_rounded_once(path: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU without and with operations in C, and as every other device computes them."""
    config = ModelConfig(d_model=HEADS * WIDTH, heads=HEADS, positions="rotary")
    positions = torch.cat([torch.arange(length) for length in QUERY_LENGTHS])
    transform = Rotary(config).transform(Places(positions, max(QUERY_LENGTHS)), dtype)
    if path == "c" and not library.use_operations(True):
        pytest.skip("needs a C compiler")
    if path == "device":
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    try:
        heads = inputs(len(positions), 1, dtype)[:1]
        error = error_of(
            lambda each: transform(each[0]),
            lambda each: torch.cat([turned(part) for part in each[0].split(QUERY_LENGTHS)]),
            heads,
        )
        assert error < limit(dtype)
    finally:
        library.use_operations(False)


def test_rotary_positions_are_the_same_on_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    (heads, *_), positions = inputs(30, 1, torch.bfloat16), torch.arange(30)
    config = ModelConfig(d_model=HEADS * WIDTH, heads=HEADS, positions="rotary")
    transform = Rotary(config).transform(Places(positions, 30), torch.bfloat16)
    on_a_cpu = transform(heads)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert relative_error(transform(heads), on_a_cpu.double()) < 2e-4


@DTYPES
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["c", "short", "fused"])
def test_the_faster_ways_to_attend(kind: str, causal: bool, dtype: torch.dtype) -> None:
    """Flash attention needs a GPU: see `tests/integration/test_cuda.py`."""
    if kind == "c" and not library.use_operations(True):
        pytest.skip("needs a C compiler")
    lengths = QUERY_LENGTHS, QUERY_LENGTHS if causal else KEY_LENGTHS
    queries = stream(lengths[0])
    keys = queries if causal else stream(lengths[1])
    made: dict[str, Callable[[], Attend]] = {
        "c": lambda: AttendInC(queries, keys, causal=causal),
        "short": lambda: ShortAttend(queries, keys, causal=causal),
        "fused": lambda: FusedPaddedAttend(queries, keys, causal=causal, precision=dtype),
    }
    try:
        attend = made[kind]()
        exact = partial(exactly, lengths=lengths, causal=causal)
        given = inputs(sum(lengths[0]), sum(lengths[1]), dtype)
        assert error_of(lambda each: attend(*each), exact, given) < TOLERANCES[dtype]
    finally:
        library.use_operations(False)
