from functools import partial
from itertools import islice

import numpy as np
import pytest

from nmt.data.batches import Batching, EpochPlan, PairLengths, plan_epoch, planned_batches, split_batch
from nmt.data.shapes import full_micro_batch_tokens, micro_batch_tokens


def random_lengths(pairs: int, seed: int = 0, longest: int = 60) -> PairLengths:
    random = np.random.default_rng(seed)
    source = random.integers(1, longest, pairs)
    return PairLengths.with_marks(source, np.clip(source + random.integers(-5, 6, pairs), 1, None))


def test_batches_of_random_lengths_are_full_samples_of_the_text() -> None:
    lengths = random_lengths(20_000)
    epoch = plan_epoch(lengths, Batching(2000, seed=3, by_length=False), epoch=1)
    assert sorted(np.concatenate([epoch[i] for i in range(len(epoch))])) == list(range(20_000))
    tokens = np.array([[side[epoch[i]].sum() for side in (lengths.source, lengths.target)] for i in range(len(epoch))])
    assert tokens.max() <= 2000
    assert np.mean(tokens.max(axis=1)) > 0.95 * 2000
    assert all(np.all(np.diff(lengths.target[epoch[i]]) >= 0) for i in range(len(epoch)))  # for equal micro-batches
    means = [lengths.target[epoch[i]].mean() for i in range(len(epoch))]
    pairs_per_batch = 20_000 / len(epoch)
    assert np.std(means) < 1.3 * lengths.target.std() / pairs_per_batch**0.5  # as of independent draws


def test_long_sentences_are_sorted_by_length_too() -> None:
    side = np.array([65_536, 3, 65_535, 1, 2, 40_000])
    plan = plan_epoch(PairLengths(side, side), Batching(200_000, seed=1), epoch=0)
    assert side[plan.order].tolist() == sorted(side.tolist())


def planned_pair_by_pair(lengths: PairLengths, batching: Batching, epoch: int) -> EpochPlan:
    """Plan an epoch in a loop over its pairs."""
    random = np.random.default_rng([batching.seed, epoch])
    order = random.permutation(np.arange(len(lengths.source), dtype=np.int32))
    order = order[np.lexsort([lengths.source[order], lengths.target[order]])]
    starts, tokens = [], np.array([batching.tokens + 1, 0])
    for index, pair in enumerate(np.stack([lengths.source[order], lengths.target[order]], axis=1)):
        tokens = tokens + pair
        if tokens.max() > batching.tokens:
            starts.append(index)
            tokens = pair
    bounds = np.stack([starts, np.append(starts[1:], len(order))], axis=1)
    return EpochPlan(order, random.permutation(bounds))


@pytest.mark.parametrize("budget", [60, 500, 100_000])
def test_plan_is_that_of_a_plain_loop(budget: int) -> None:
    for lengths in (random_lengths(1000), random_lengths(1000, longest=3), random_lengths(8)):
        plan, expected = (plan(lengths, Batching(budget, seed=3), 1) for plan in (plan_epoch, planned_pair_by_pair))
        np.testing.assert_array_equal(plan.order, expected.order)
        np.testing.assert_array_equal(plan.bounds, expected.bounds)


@pytest.mark.parametrize(("devices", "device_tokens"), [(1, 0), (1, 333), (3, 100), (8, 0), (8, 100)])
def test_micro_batches_hold_all_sentences_within_their_budget(devices: int, device_tokens: int) -> None:
    lengths = random_lengths(3000)
    epoch = plan_epoch(lengths, Batching(1000, seed=3), epoch=1)
    for index in range(len(epoch)):
        micro_batches = split_batch(epoch[index], lengths, devices, device_tokens)
        assert len(micro_batches) % devices == 0
        assert sorted(np.concatenate(micro_batches)) == sorted(epoch[index])
        weights = [lengths.target[micro_batch].sum() for micro_batch in micro_batches]
        assert max(weights) - min(weights) <= lengths.target[epoch[index]].max() + len(epoch[index])
        for micro_batch in micro_batches:
            if device_tokens and len(micro_batch) > 1:
                assert max(lengths.source[micro_batch].sum(), lengths.target[micro_batch].sum()) <= device_tokens


@pytest.mark.parametrize(
    ("tokens", "devices", "sizes"), [([4, 4, 4, 4], 1, [2, 2]), ([9], 1, [1]), ([9, 1, 1], 2, [1, 1, 1, 0])]
)
def test_there_are_no_more_micro_batches_than_needed(tokens: list[int], devices: int, sizes: list[int]) -> None:
    lengths = PairLengths(*(np.array(tokens, np.int32) for _ in range(2)))
    found = split_batch(np.arange(len(tokens)), lengths, devices, device_tokens=8)
    assert [len(each) for each in found] == sizes


def test_planned_batches_are_those_of_each_epochs_own_plan() -> None:
    plan_of = partial(plan_epoch, random_lengths(200), Batching(150, seed=1))
    expected = [
        (epoch, index, plan_of(epoch)[index].tolist()) for epoch in range(3) for index in range(len(plan_of(0)))
    ]
    for first in (0, 3, len(plan_of(0)) - 1):
        planned = islice(planned_batches(plan_of, 0, first), len(expected) - first)
        assert [(epoch, index, plan[index].tolist()) for epoch, plan, index in planned] == expected[first:]


@pytest.mark.parametrize(
    ("device_tokens", "devices", "planned", "full"),
    [
        (0, 1, 25_000, 25_000),
        (0, 8, 3_125, 3_125),
        (2_000, 8, 2_000, 1_563),
        (9_000, 8, 3_125, 3_125),
    ],
)
def test_devices_and_micro_batches_share_the_tokens_of_a_batch(
    device_tokens: int, devices: int, planned: int, full: int
) -> None:
    assert micro_batch_tokens(25_000, device_tokens, devices) == planned
    assert full_micro_batch_tokens(25_000, device_tokens, devices) == full
