"""Noise on batches depends on seed and place alone, and keeps to the memory that was checked."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch

from nmt.config.compose import compose
from nmt.config.data import NoiseConfig, TokenizerConfig
from nmt.data.batches import Batching, plan_epoch
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch, global_batches
from nmt.data.noise import Noise, make_noise
from nmt.data.shapes import ROOM_TO_GROW
from nmt.data.store import PairStore, in_memory
from nmt.demo.source import draw
from nmt.errors import UserError
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train

PAIRS = [each.pair for each in draw(1, 400, 1, 1)["train"]]
EVERYTHING = np.arange(len(PAIRS))
START = DataPosition()
BATCH_TOKENS = 300
Content = dict[int, tuple[list[int], list[int]]]
"""The source and the target of pairs, by their numbers."""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = [side for pair in PAIRS for side in pair]
    return Tokenizer(train(iter(text), len(text), TokenizerConfig(vocab_size=300)))


@pytest.fixture(scope="module")
def store(tokenizer: Tokenizer) -> PairStore:
    return store_of(tokenizer, PAIRS)


@pytest.fixture(scope="module")
def noise(tokenizer: Tokenizer) -> Noise:
    return noise_of(tokenizer, 0.2)


def store_of(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> PairStore:
    sources, targets = zip(*pairs, strict=True)
    sides = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    source, target = (
        (np.array([each for ids in side for each in ids]), np.array([len(ids) for ids in side])) for side in sides
    )
    return in_memory(source, target)


def noise_of(tokenizer: Tokenizer, share: float, seed: int = 1, max_pieces: int = 400) -> Noise:
    noise = make_noise(NoiseConfig(bpe_dropout=share), tokenizer, seed, max_pieces)
    assert noise is not None
    return noise


def ids(store: PairStore) -> list[tuple[list[int], list[int]]]:
    return [(store.source(index).tolist(), store.target(index).tolist()) for index in range(len(store))]


def test_noise_depends_on_seed_epoch_and_batch_alone(tokenizer: Tokenizer, store: PairStore, noise: Noise) -> None:
    once = ids(noise(store, EVERYTHING, 2, 5))
    assert ids(noise(store, EVERYTHING, 2, 5)) == once
    of_other_seed = noise_of(tokenizer, 0.2, seed=2)(store, EVERYTHING, 2, 5)
    others = [noise(store, EVERYTHING, 3, 5), noise(store, EVERYTHING, 2, 4), of_other_seed, store]
    assert all(ids(other) != once for other in others)


def test_pairs_that_noise_makes_too_long_stay_as_they_were(tokenizer: Tokenizer, store: PairStore) -> None:
    limit = 30
    free = ids(noise_of(tokenizer, 0.4)(store, EVERYTHING, 0, 0))
    limited = ids(noise_of(tokenizer, 0.4, max_pieces=limit)(store, EVERYTHING, 0, 0))
    long = [max(map(len, pair)) > limit for pair in free]
    assert 20 < sum(long) < 380
    assert limited == [
        clean if too_long else pair for clean, pair, too_long in zip(ids(store), free, long, strict=True)
    ]


def test_noise_that_cannot_be_applied_is_refused() -> None:
    text = [side for pair in PAIRS for side in pair]
    unigram = Tokenizer(train(iter(text), len(text), TokenizerConfig(vocab_size=100, model_type="unigram")))
    with pytest.raises(UserError, match=r"noise\.bpe_dropout needs a BPE tokenizer, .*model_type=bpe"):
        make_noise(NoiseConfig(bpe_dropout=0.1), unigram, 1, 99)
    compose(["noise.bpe_dropout=0.1", "tokenizer.model_type=unigram", "training.init_from=old"])  # it may be of BPE


def stream(
    store: PairStore, noise: Noise | None, start: DataPosition = START, rank: int = 0, devices: int = 1, limit: int = 0
) -> Iterator[GlobalBatch]:
    batching = Batching(BATCH_TOKENS, seed=1)
    return global_batches(store, batching, device_tokens=limit, start=start, rank=rank, devices=devices, noise=noise)


def pairs_of(batch: MicroBatch) -> Content:
    """Return the source, and the labels, of each pair of a micro-batch by its number; check the decoder's input."""
    found = {}
    for place, number in enumerate(batch.sentences.tolist()):
        source = batch.source.tokens[slice(*batch.source.offsets[place : place + 2].tolist())].tolist()
        span = slice(*batch.target.offsets[place : place + 2].tolist())
        labels = batch.labels[span].tolist()
        assert batch.target.tokens[span].tolist() == [BOS, *labels[:-1]]
        found[number] = (source, labels)
    return found


def content(batches: list[GlobalBatch]) -> Content:
    """Return all pairs of one global batch, which devices share."""
    parts = [pairs_of(each) for batch in batches for each in batch.micro_batches]
    found = {number: pair for part in parts for number, pair in part.items()}
    assert len(found) == sum(map(len, parts))
    return found


def test_batches_hold_the_pairs_that_noise_makes_and_resume(store: PairStore, noise: Noise) -> None:
    batches = list(islice(stream(store, noise), 50))
    starts = [START, *(batch.after for batch in batches)]
    assert {epoch for epoch, *_ in starts} >= {0, 1}
    for (epoch, number), batch, clean in zip(starts, batches, stream(store, None), strict=False):
        found = content([batch])
        pairs = plan_epoch(store.pair_lengths, Batching(BATCH_TOKENS, seed=1), epoch)[number]
        noised = noise(store, pairs, epoch, number)
        for index, pair in enumerate(pairs.tolist()):
            assert found[pair] == ([*noised.source(index), EOS], [*noised.target(index), EOS])
        assert (found.keys(), batch.after) == (content([clean]).keys(), clean.after)
        sizes = [sum(map(len, side)) for side in zip(*found.values(), strict=True)]
        assert (batch.tokens - batch.target_tokens, batch.target_tokens) == tuple(sizes)
    for done in (0, 7, 48):
        resumed = next(stream(store, noise, batches[done].after))
        for one, other in zip(resumed.micro_batches, batches[done + 1].micro_batches, strict=True):
            assert torch.equal(one.source.tokens, other.source.tokens)
            assert torch.equal(one.labels, other.labels)


def test_devices_share_the_same_noise(store: PairStore, noise: Noise) -> None:
    ranks = [islice(stream(store, noise, rank=rank, devices=8), 6) for rank in range(8)]
    for one, several in zip(stream(store, noise), zip(*ranks, strict=True), strict=False):
        assert content([one]) == content(list(several))
        assert {batch[1:4] for batch in several} == {one[1:4]}


@pytest.mark.parametrize(("limit", "devices"), [(0, 2), (120, 1)])
def test_no_micro_batch_is_longer_than_the_memory_check_allows(
    store: PairStore, noise: Noise, limit: int, devices: int
) -> None:
    longest = limit or int(ROOM_TO_GROW * BATCH_TOKENS / devices)
    parts = [
        each for batch in islice(stream(store, noise, devices=devices, limit=limit), 20) for each in batch.micro_batches
    ]
    sizes = [sum(map(len, side)) for each in parts for side in zip(*pairs_of(each).values(), strict=True)]
    assert 0.8 * longest < max(sizes) <= longest
