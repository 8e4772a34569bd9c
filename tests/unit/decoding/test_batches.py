"""Which sentences are decoded together, and what decodes them."""

from collections.abc import Iterator
from typing import Literal

import pytest
import torch

from nmt.compute.workers import Workers
from nmt.decoding import batches
from nmt.decoding.batches import (
    MAX_CPU_HYPOTHESES,
    MAX_FORK_HYPOTHESES,
    MIN_SENTENCE_TOKENS,
    batches_by_length,
    cpu_plan,
    same_plan,
    serial_plan,
)


@pytest.fixture(autouse=True)
def four_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the plan see four threads, in a process that can be forked."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    monkeypatch.setattr(batches, "can_fork", lambda: True)
    yield
    torch.set_num_threads(before)


def test_batches_hold_sentences_of_similar_length_within_the_budget() -> None:
    lengths = [30, 0, 17, 200, 5, 29, 18, 1, 0, 31]
    assert list(batches_by_length(lengths, 64)) == [[3], [9, 0], [5, 6, 2], [4, 7]]
    assert list(batches_by_length([0, 0], 64)) == []
    assert max(len(batch) for batch in batches_by_length([1] * 1000, 64)) == 64 // MIN_SENTENCE_TOKENS
    assert [len(batch) for batch in batches_by_length([1] * 7, 1000, max_sentences=3)] == [3, 3, 1]


def test_a_serial_plan_has_whole_batches() -> None:
    lengths = [40] * 10
    assert serial_plan(lengths, 200) == (list(batches_by_length(lengths, 200)), Workers())


@pytest.mark.parametrize(
    ("sentences", "kind", "workers"),
    [(0, "serial", 1), (7, "serial", 1), (8, "forks", 2), (16, "forks", 4)],
)
def test_few_sentences_take_few_workers(sentences: int, kind: Literal["serial", "forks"], workers: int) -> None:
    plan = cpu_plan([20] * sentences + [0] * 50, 10_000, hypotheses=5)
    assert plan.workers == Workers(kind, workers)
    assert sorted(index for batch in plan.batches for index in batch) == list(range(sentences))
    assert len(plan.batches) == (workers if sentences else 0)


def test_small_batches_are_decoded_in_forks_and_large_ones_in_threads() -> None:
    small = [20] * (4 * MAX_FORK_HYPOTHESES)
    assert cpu_plan(small, 10_000_000, hypotheses=1).workers == Workers("forks", 4)
    assert cpu_plan([*small, 20], 10_000_000, hypotheses=1).workers == Workers("threads", 4)
    assert cpu_plan(small, 10_000_000, hypotheses=2).workers == Workers("threads", 4)


def test_threads_are_used_if_a_fork_is_not_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "can_fork", lambda: False)
    assert cpu_plan([20] * 40, 10_000, hypotheses=5).workers == Workers("threads", 4)


def test_forks_use_all_cores_even_if_threads_would_not() -> None:
    torch.set_num_threads(7)
    assert cpu_plan([20] * 56, 400, hypotheses=5).workers == Workers()
    torch.set_num_threads(8)
    assert cpu_plan([20] * 56, 400, hypotheses=5).workers == Workers("forks", 8)


def test_batches_in_flight_share_the_tokens_and_the_hypotheses_are_limited() -> None:
    plan = cpu_plan([20] * 1000, 4000, hypotheses=2)
    assert plan.workers.count == 4
    assert max(map(len, plan.batches)) == 4000 // 4 // 20
    torch.set_num_threads(1)
    serial = cpu_plan([20] * 1000, 10**9, hypotheses=5)
    assert serial.workers == Workers()
    assert max(map(len, serial.batches)) == MAX_CPU_HYPOTHESES // 5
    assert cpu_plan([20], 100, hypotheses=10 * MAX_CPU_HYPOTHESES).batches == [[0]]


@pytest.mark.parametrize("threads", [1, 3, 4])
def test_the_same_batches_are_decoded_by_one_core_each_whatever_the_number_of_cores(threads: int) -> None:
    lengths = [5, 0, *range(1, 60)]
    torch.set_num_threads(threads)
    plan = same_plan(lengths, 300, hypotheses=5)
    assert plan.batches == list(batches_by_length(lengths, 300))
    assert plan.workers == (Workers() if threads == 1 else Workers("forks", threads))
