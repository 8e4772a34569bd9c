"""Global batches with noise: the same on any number of devices, after a resume, and within the memory checked."""

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np
import pytest
import torch

from nmt.config.data import NoiseConfig, TokenizerConfig
from nmt.data.batches import Batching
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch, global_batches
from nmt.data.noise import Noise, make_noise
from nmt.data.shapes import ROOM_TO_GROW
from nmt.data.store import PairStore
from nmt.demo.source import draw
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train
from tests.unit.data.noise.test_noise import store_of

PAIRS = [each.pair for each in draw(2, 300, 1, 1)["train"]]
START = DataPosition()
BATCH_TOKENS = 300


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = [side for pair in PAIRS for side in pair]
    return Tokenizer(train(iter(text), len(text), TokenizerConfig(vocab_size=300))[0])


@pytest.fixture(scope="module")
def store(tokenizer: Tokenizer) -> PairStore:
    return store_of(tokenizer, PAIRS)


@pytest.fixture(scope="module")
def noise(tokenizer: Tokenizer) -> Noise:
    shares = NoiseConfig(bpe_dropout=0.2)
    noise = make_noise(shares, tokenizer, 1, 200)
    assert noise is not None
    return noise


def stream(
    store: PairStore, noise: Noise | None, start: DataPosition = START, rank: int = 0, devices: int = 1, limit: int = 0
) -> Iterator[GlobalBatch]:
    batching = Batching(BATCH_TOKENS, seed=1)
    return global_batches(store, batching, device_tokens=limit, start=start, rank=rank, devices=devices, noise=noise)


def pairs_of(batch: MicroBatch) -> dict[int, tuple[list[int], list[int]]]:
    """Return the source, and the labels, of each pair of a micro-batch by its number; check the decoder's input."""
    found = {}
    for place, number in enumerate(batch.sentences.tolist()):
        source = batch.source.tokens[slice(*batch.source.offsets[place : place + 2].tolist())].tolist()
        target, labels = (
            tokens[slice(*batch.target.offsets[place : place + 2].tolist())].tolist()
            for tokens in (batch.target.tokens, batch.labels)
        )
        assert target == [BOS, *labels[:-1]]
        found[number] = (source, labels)
    return found


def content(batches: list[GlobalBatch]) -> dict[int, tuple[list[int], list[int]]]:
    """Return all pairs of one global batch, which devices share."""
    parts = [pairs_of(each) for batch in batches for each in batch.micro_batches]
    found = {number: pair for part in parts for number, pair in part.items()}
    assert len(found) == sum(map(len, parts))
    return found


def test_batches_hold_the_pairs_that_noise_makes(store: PairStore, noise: Noise) -> None:
    epochs = set()
    batches = list(islice(stream(store, noise), 50))
    starts = [START, *(batch.after for batch in batches)]
    for (epoch, *_), batch, clean in zip(starts, batches, stream(store, None), strict=False):
        found = content([batch])
        assert found.keys() == content([clean]).keys()
        numbers = np.array(list(found))
        noised = noise(store, numbers, epoch)
        for index, pair in enumerate(found.values()):
            assert pair == ([*noised.source(index), EOS], [*noised.target(index), EOS])
        assert batch.target_tokens == sum(len(target) for _, target in found.values())
        assert batch.tokens - batch.target_tokens == sum(len(source) for source, _ in found.values())
        assert batch.after == clean.after
        epochs.add(epoch)
    assert epochs >= {0, 1}


def test_devices_share_the_same_noise(store: PairStore, noise: Noise) -> None:
    alone = islice(stream(store, noise), 6)
    ranks = [islice(stream(store, noise, rank=rank, devices=8), 6) for rank in range(8)]
    for one, several in zip(alone, zip(*ranks, strict=True), strict=True):
        assert content([one]) == content(list(several))
        assert {batch[1:4] for batch in several} == {one[1:4]}
        words = {each for pair in content([one]).values() for each in chain(*pair)}
        assert all(batch.words is not None and {*batch.words.tolist()} == words | {PAD, BOS, EOS} for batch in several)


def test_a_resumed_stream_has_the_same_noise(store: PairStore, noise: Noise) -> None:
    whole = list(islice(stream(store, noise), 50))
    for done in (0, 7, 48):
        (resumed,) = islice(stream(store, noise, whole[done].after), 1)
        for one, other in zip(resumed.micro_batches, whole[done + 1].micro_batches, strict=True):
            assert torch.equal(one.source.tokens, other.source.tokens)
            assert torch.equal(one.labels, other.labels)


@pytest.mark.parametrize(("limit", "devices"), [(0, 2), (120, 1)])
def test_no_micro_batch_is_longer_than_the_memory_check_allows(
    store: PairStore, noise: Noise, limit: int, devices: int
) -> None:
    longest = limit or int(ROOM_TO_GROW * BATCH_TOKENS / devices)
    sizes = []
    for batch in islice(stream(store, noise, devices=devices, limit=limit), 20):
        for each in batch.micro_batches:
            source, labels = zip(*pairs_of(each).values(), strict=True)
            sizes += [sum(map(len, source)), sum(map(len, labels))]
    assert max(sizes) <= longest
    assert max(sizes) > 0.8 * longest
