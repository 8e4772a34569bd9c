"""Filled streams: few sizes, little filler."""

import numpy as np
import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.data.batches import Batching, IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.shapes import Shapes, full_micro_batch_tokens

GPU = Machine(torch.device("cuda"), torch.bfloat16)
MODEL = ModelConfig()


def text(pairs: int, longest: int = 256) -> PairLengths:
    """Return lengths that are distributed like those of WMT14; German is a little longer."""
    random = np.random.default_rng(1)
    source = random.lognormal(np.log(24), 0.5, pairs)
    target = source * random.lognormal(0.05, 0.25, pairs)
    return PairLengths.with_marks(*(np.clip(side, 1, longest).astype(np.int64) for side in (source, target)))


def filled(shapes: Shapes, lengths: PairLengths, sentences: IntArray) -> list[IntArray]:
    """Return the lengths of the source and target sentences of a micro-batch, filler included."""
    sides = lengths.source[sentences], lengths.target[sentences]
    return [np.append(side, filler) for side, filler in zip(sides, shapes.filler(*sides), strict=True)]


@pytest.mark.parametrize(("devices", "device_tokens"), [(1, 0), (1, 8000), (8, 0)])
def test_a_gpu_sees_few_sizes_and_little_filler_at_the_papers_batch(devices: int, device_tokens: int) -> None:
    lengths, per_device = text(100_000), full_micro_batch_tokens(25_000, device_tokens, devices)
    plan, shapes = plan_epoch(lengths, Batching(25_000, seed=1), epoch=0), Shapes.on(GPU, MODEL, per_device)
    real, total, tokens, sentences, longest = 0, 0, set(), set(), set()
    for index in range(len(plan)):
        for pairs in split_batch(plan[index], lengths, devices, device_tokens):
            sides = filled(shapes, lengths, pairs)
            count, size = sum(int(side[pairs].sum()) for side in (lengths.source, lengths.target)), int(np.sum(sides))
            assert size - count <= 0.05 * 2 * per_device
            real, total = real + count, total + size
            tokens |= {int(side.sum()) for side in sides}
            sentences.add(shapes.sentences(len(sides[0])))
            longest |= {shapes.longest(int(side.max())) for side in sides}
    assert 1 - real / total < 0.02
    assert len(tokens) <= 20
    assert len(sentences) <= 12
    assert longest <= {32, 64, 128, 256, 512}


@pytest.mark.parametrize("shapes", [Shapes(), Shapes.on(GPU, MODEL, 300), Shapes(320, 64)], ids=str)
@pytest.mark.parametrize(
    ("source", "target"),
    [([1], [1]), ([300], [1]), ([1] * 150, [2] * 150), ([700], [650]), ([32], [31]), ([5, 9], [320])],
)
def test_filled_streams_have_the_promised_sizes(shapes: Shapes, source: list[int], target: list[int]) -> None:
    pairs = max(len(source), len(target))
    lengths = PairLengths(np.resize(source, pairs), np.resize(target, pairs))
    sides = filled(shapes, lengths, np.arange(pairs))
    assert len(sides[0]) == len(sides[1])
    for side, real in zip(sides, (lengths.source, lengths.target), strict=True):
        assert side[:pairs].tolist() == real.tolist()
        assert side.min() >= 1
        assert (side.sum() - shapes.full_tokens) % shapes.token_step == 0
        assert side.sum() < real.sum() + 2 * shapes.token_step
        assert side.max() == real.max() or not shapes.full_tokens
        assert shapes.longest(int(side.max())) >= side.max()
        assert shapes.sentences(len(side)) >= len(side)
