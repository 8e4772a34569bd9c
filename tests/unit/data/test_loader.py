import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest

from nmt.data.batches import Batching
from nmt.data.loader import DataPosition, GlobalBatch, assemble, global_batches, prefetched
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, writing
from nmt.text.special import BOS, EOS, PAD

SOURCES = [[5, 6], [7], [8, 9, 10], []]
TARGETS = [[15], [16, 17, 18], [19, 20], [21, 22]]

START = DataPosition()


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    with writing(tmp_path, "train", ("en", "de"), 30) as writer:
        for source, target in zip(SOURCES, TARGETS, strict=True):
            writer.append(
                np.array(source, np.uint16), np.array([len(source)], np.int32),
                np.array(target, np.uint16), np.array([len(target)], np.int32),
            )  # fmt: skip
    return PairStore.open(tmp_path, "train")


def test_assemble_packs_sentences_with_start_and_end_marks(store: PairStore) -> None:
    batch = assemble(store, np.array([2, 0, 3]))
    assert batch.source.tokens[:8].tolist() == [8, 9, 10, EOS, 5, 6, EOS, EOS]
    assert batch.source.offsets[:4].tolist() == [0, 4, 7, 8]
    assert batch.source.positions[:8].tolist() == [0, 1, 2, 3, 0, 1, 2, 0]
    assert batch.source.longest == 4
    assert batch.target.tokens[:8].tolist() == [BOS, 19, 20, BOS, 15, BOS, 21, 22]
    assert batch.labels[:8].tolist() == [19, 20, EOS, 15, EOS, 21, 22, EOS]
    for filler in (batch.source.tokens[8:], batch.target.tokens[8:], batch.labels[8:]):
        assert set(filler.tolist()) == {PAD}


def test_on_a_gpu_streams_end_with_sentences_without_tokens(store: PairStore) -> None:
    shapes = Shapes(full_tokens=64, token_step=16, buckets=True)
    batch, bare = (assemble(store, np.array([2, 0, 3]), shapes=each) for each in (shapes, Shapes(token_step=1)))
    for stream, real in ((batch.source, bare.source), (batch.target, bare.target)):
        assert stream.tokens.tolist() == [*real.tokens.tolist(), *[PAD] * (16 - len(real.tokens))]
        assert stream.offsets.tolist() == [*real.offsets.tolist(), 10, 13, 16, 16, 16]
        assert stream.positions.tolist() == [*real.positions.tolist(), 0, 1, 0, 1, 2, 0, 1, 2]
        assert stream.longest == 32
    assert batch.labels.tolist() == [*bare.labels.tolist(), *[PAD] * (16 - len(bare.labels))]


def test_assemble_cuts_sentences_after_max_pieces(store: PairStore) -> None:
    batch = assemble(store, np.array([2, 1]), (2, 1))
    assert batch.source.tokens[:5].tolist() == [8, 9, EOS, 7, EOS]
    assert batch.target.tokens[:4].tolist() == [BOS, 19, BOS, 16]
    assert batch.labels[:4].tolist() == [19, EOS, 16, EOS]


def stream(store: PairStore, start: DataPosition = START, rank: int = 0, devices: int = 1) -> Iterator[GlobalBatch]:
    return global_batches(store, Batching(6, seed=1), device_tokens=0, start=start, rank=rank, devices=devices)


def summary(batch: GlobalBatch) -> tuple[list[list[int]], int, int, DataPosition]:
    return [each.sentences.tolist() for each in batch.micro_batches], batch.target_tokens, batch.tokens, batch.after


def test_stream_resumes_from_any_position(store: PairStore) -> None:
    whole = [summary(batch) for batch in islice(stream(store), 12)]
    assert {position.epoch for *_, position in whole} >= {0, 1, 2}
    for done in range(11):
        assert [summary(batch) for batch in islice(stream(store, whole[done][3]), 11 - done)] == whole[done + 1 :]


def test_devices_share_the_same_global_batches(store: PairStore) -> None:
    on_one_device = [summary(batch) for batch in islice(stream(store), 8)]
    ranks = [[summary(batch) for batch in islice(stream(store, rank=rank, devices=2), 8)] for rank in range(2)]
    for one, first, second in zip(on_one_device, *ranks, strict=True):
        assert one[1:] == first[1:] == second[1:]
        pairs = [*chain(*one[0])]
        assert one[1] == sum(len(TARGETS[pair]) + 1 for pair in pairs)
        assert one[2] == one[1] + sum(len(SOURCES[pair]) + 1 for pair in pairs)
        assert len(first[0]) == len(second[0])
        assert sorted(chain(*one[0])) == sorted(chain(*first[0], *second[0]))


def test_prefetching_yields_the_same_batches_and_stops(store: PairStore) -> None:
    with closing(prefetched(stream(store))) as batches:
        assert [summary(batch) for batch in islice(batches, 9)] == [
            summary(batch) for batch in islice(stream(store), 9)
        ]
    assert not any(thread.name.startswith("batches") for thread in threading.enumerate())


def test_prefetching_raises_errors_of_its_thread(store: PairStore) -> None:
    def failing() -> Iterator[GlobalBatch]:
        yield from islice(stream(store), 2)
        raise OSError("the disk is gone")

    with closing(prefetched(failing())) as batches:
        list(islice(batches, 2))
        with pytest.raises(OSError, match="the disk is gone"):
            next(batches)
