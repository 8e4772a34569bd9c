"""Which sentences are decoded together, and by how many workers."""

from collections.abc import Iterator

import pytest
import torch

from nmt.decoding.batches import MAX_CPU_HYPOTHESES, MIN_SENTENCE_TOKENS, batches_by_length, cpu_plan


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_batches_hold_sentences_of_similar_length_within_the_budget() -> None:
    lengths = [30, 0, 17, 200, 5, 29, 18, 1, 0, 31]
    assert list(batches_by_length(lengths, 64)) == [[3], [9, 0], [5, 6, 2], [4, 7]]
    assert max(len(batch) for batch in batches_by_length([1] * 1000, 64)) == 64 // MIN_SENTENCE_TOKENS
    assert [len(batch) for batch in batches_by_length([1] * 7, 1000, max_sentences=3)] == [3, 3, 1]


@pytest.mark.parametrize(("sentences", "workers"), [(0, 1), (7, 1), (8, 2), (16, 4), (4000, 4)])
def test_workers_share_the_tokens_and_few_sentences_take_few_workers(sentences: int, workers: int) -> None:
    plan = cpu_plan([20] * sentences + [0] * 50, 4000, hypotheses=5)
    assert plan.workers == workers
    assert sorted(index for batch in plan.batches for index in batch) == list(range(sentences))
    assert max(map(len, plan.batches), default=0) <= min(4000 // workers // 20, MAX_CPU_HYPOTHESES // 5)


@pytest.mark.parametrize("threads", [1, 3, 4])
def test_the_same_batches_are_decoded_by_one_core_each_whatever_the_number_of_cores(threads: int) -> None:
    lengths = [5, 0, *range(1, 60)]
    torch.set_num_threads(threads)
    assert cpu_plan(lengths, 300, hypotheses=5, same=True) == (list(batches_by_length(lengths, 300)), threads)
