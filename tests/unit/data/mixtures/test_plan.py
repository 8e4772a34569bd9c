"""The plan of a mixture, compared with counts of its batches and with what the settings promise."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, islice
from typing import Any

import numpy as np
import pytest

from nmt.config.data import DataConfig
from nmt.data.batches import Batching, EpochPlan, PairLengths
from nmt.data.loader import DataPosition, GlobalBatch, global_batches
from nmt.data.mixture import MixedStore, shares_of
from nmt.data.store import SIDES, SOURCE, TARGET, PairStore
from shared.synthetic import synthetic_pairs

SIZES = {"main": 3000, "crawled": 9000, "tiny": 7}


def settings(*, temperature: float = 0.0, **weights: float) -> DataConfig:
    others = {name: {"train": ["a", "b"], "weight": weights.get(name, 1.0)} for name in list(SIZES)[1:]}
    found: dict[str, Any] = {"mixture": others, "weight": weights.get("main", 1.0)}
    return DataConfig(**found, temperature=temperature)


@cache
def stores() -> dict[str, PairStore]:
    longest = {"main": 40, "crawled": 60, "tiny": 9}
    return {
        name: synthetic_pairs(50, 50, pairs=size, seed=seed, max_length=longest[name])
        for seed, (name, size) in enumerate(SIZES.items())
    }


def mixture(data: DataConfig) -> MixedStore:
    found = stores()
    tokens = {name: sum(int(store.lengths(side).sum()) for side in SIDES) for name, store in found.items()}
    return MixedStore(found, shares_of(data, tokens))


def epochs(store: MixedStore, count: int, seed: int = 1, *, by_length: bool = True) -> list[EpochPlan]:
    planner = store.planner(lengths_of(store), Batching(600, seed, by_length))
    return [planner(number) for number in range(count)]


def lengths_of(store: MixedStore) -> PairLengths:
    return store.pair_lengths


def corpus_of(store: MixedStore, pair: int) -> str:
    return store.corpora[int(store.corpora_of(np.array([pair]))[0])]


def token_shares(store: MixedStore, plans: list[EpochPlan]) -> dict[str, float]:
    """Count the tokens of each corpus."""
    lengths, counts, start = lengths_of(store), Counter[str](), 0
    pairs = np.concatenate([plan.order for plan in plans])
    for name, size in SIZES.items():
        own = pairs[(start <= pairs) & (pairs < start + size)]
        counts[name] = int(lengths.source[own].sum()) + int(lengths.target[own].sum())
        start += size
    return {name: count / counts.total() for name, count in counts.items()}


@pytest.mark.parametrize("temperature", [1, 5])
def test_temperature_flattens_the_sizes_of_the_corpora(temperature: float) -> None:
    store = mixture(settings(temperature=temperature))
    sizes = {name: sum(int(each.lengths(side).sum()) for side in SIDES) for name, each in stores().items()}
    powers = {name: size ** (1 / temperature) for name, size in sizes.items()}
    found = token_shares(store, epochs(store, 8))
    for name in ("main", "crawled"):
        assert found[name] == pytest.approx(powers[name] / sum(powers.values()), rel=0.05)


def test_no_pair_occurs_again_before_all_others_of_its_corpus() -> None:
    store = mixture(settings(main=2))
    counts = Counter(chain.from_iterable(plan.order.tolist() for plan in epochs(store, 65)))
    start = 0
    for size in SIZES.values():
        times = [counts[pair] for pair in range(start, start + size)]
        assert max(times) - min(times) <= 1
        start += size
    assert min(counts[pair] for pair in range(3000)) >= 1


def test_batches_keep_the_budget_and_mix_the_corpora() -> None:
    store = mixture(settings())
    lengths, mixed = lengths_of(store), 0
    for plan in epochs(store, 20):
        assert sorted(chain.from_iterable(plan[index].tolist() for index in range(len(plan)))) == sorted(plan.order)
        for index in range(len(plan)):
            assert max(lengths.source[plan[index]].sum(), lengths.target[plan[index]].sum()) <= 600
            mixed += len({corpus_of(store, pair) for pair in plan[index].tolist()}) > 1
    assert mixed > 300


def stream(start: DataPosition = DataPosition(), rank: int = 0, devices: int = 1) -> Iterator[GlobalBatch]:  # noqa: B008
    store = mixture(settings(main=3, tiny=0.05))
    return global_batches(store, Batching(400, seed=3), device_tokens=0, start=start, rank=rank, devices=devices)


def pairs_of(batch: GlobalBatch) -> list[int]:
    return sorted(pair for each in batch.micro_batches for pair in each.sentences.tolist())


def test_stream_resumes_from_any_position() -> None:
    whole = list(islice(stream(), 110))
    assert {batch.after.epoch for batch in whole} >= {1, 2, 3}
    for done in (1, *range(20, 46), 70, 105):
        resumed = list(islice(stream(whole[done - 1].after), 5))
        for batch, expected in zip(resumed, whole[done : done + 5], strict=True):
            assert pairs_of(batch) == pairs_of(expected)
            assert (batch.after, batch.corpora) == (expected.after, expected.corpora)


def test_batches_count_the_pairs_and_tokens_of_each_corpus() -> None:
    store = mixture(settings())
    for batch in islice(stream(), 35, 50):
        expected = {name: [0, 0] for name in SIZES}
        for pair in pairs_of(batch):
            count = expected[corpus_of(store, pair)]
            count[0] += 1
            count[1] += len(store.source(pair)) + len(store.target(pair)) + 2
        assert {name: list(counts) for name, counts in batch.corpora.items()} == expected
        assert sum(tokens for _, tokens in batch.corpora.values()) == batch.tokens


def test_mixed_store_has_the_sentences_of_its_stores_in_any_order() -> None:
    store, parts = mixture(settings()), list(stores().values())
    sources = [part.source(index).tolist() for part in parts for index in range(len(part))]
    targets = [part.target(index).tolist() for part in parts for index in range(len(part))]
    assert len(store) == len(sources)
    for pairs in ([0], [12_006, 5, 3000, 2999, 12_000], [4, 3]):
        for side, expected in ((SOURCE, sources), (TARGET, targets)):
            ids, lengths = store.gather(side, np.array(pairs), 6)
            assert lengths.tolist() == [min(6, len(expected[pair])) for pair in pairs]
            assert ids.tolist() == [piece for pair in pairs for piece in expected[pair][:6]]
