"""Global batches as tensors, assembled in the background ahead of the step that trains on them."""

import queue
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.data.batches import IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.store import PairStore
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS, PAD

PREFETCHED_BATCHES = 4
"""Steps assembled ahead of the one that trains."""
TOKEN_MULTIPLE = 32
"""Tokens of a stream come in multiples of this: a CPU's products are made anew, which can take longer than they do,
for every number of rows that it has not had before."""
WHOLE = (sys.maxsize, sys.maxsize)
"""No limit to the word pieces of a source and of a target sentence."""
CANDIDATES = 64
"""Batches, heaviest first, that are sliced to find the heaviest slice: the heaviest batch need not hold it."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What a device takes at once."""

    source: Packed
    """Source sentences, each with its end mark."""
    target: Packed
    """What the decoder reads: a start mark, then the translation."""
    labels: Tensor
    """(T,) what it should say: the translation, then an end mark. PAD counts for nothing."""
    sentences: IntArray
    """Which sentence pairs of the corpus these are."""

    def to(self, device: torch.device) -> "MicroBatch":
        """The same batch on another device."""
        labels = self.labels.to(device, non_blocking=True)
        return MicroBatch(self.source.to(device), self.target.to(device), labels, self.sentences)


class DataPosition(NamedTuple):
    """A place in the stream of batches; training goes on from it in no time."""

    epoch: int = 0
    batch: int = 0


class GlobalBatch(NamedTuple):
    """A global batch, as far as this device is concerned."""

    micro_batches: list[MicroBatch]
    """What this device accumulates its gradient over."""
    target_tokens: int
    """Labels of the global batch, over all devices: what the loss is divided by."""
    tokens: int
    """Source and target tokens of the global batch, special ones counted."""
    after: DataPosition
    """Where the next step begins."""


def assemble(store: PairStore, sentences: IntArray, most: tuple[int, int] = WHOLE) -> MicroBatch:
    """Pack sentence pairs, the first `most` pieces of each source and target; no pairs give a batch without weight."""
    if not len(sentences):
        mark = Packed.from_sentences([[EOS]])
        return MicroBatch(mark, Packed.from_sentences([[BOS]]), torch.tensor([PAD]), sentences)
    words, lengths = _gather(store.source_tokens, store.source_offsets, sentences, most[0])
    source = _with_mark(words, lengths, EOS, at_end=True)
    target_words, target_lengths = _gather(store.target_tokens, store.target_offsets, sentences, most[1])
    target, labels = (_with_mark(target_words, target_lengths, mark, at_end=mark == EOS) for mark in (BOS, EOS))
    filling = _filling(lengths + 1, target_lengths + 1)
    return MicroBatch(
        Packed.from_lengths(_filled(source, filling[0]), torch.from_numpy(np.append(lengths + 1, filling[0]))),
        Packed.from_lengths(_filled(target, filling[1]), torch.from_numpy(np.append(target_lengths + 1, filling[1]))),
        _filled(labels, filling[1]),
        sentences,
    )


def _filling(source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
    """Lengths of sentence pairs of padding that make both sides' tokens multiples of EVEN, given those of the text."""
    missing = [-int(lengths.sum()) % TOKEN_MULTIPLE for lengths in (source, target)]
    if not any(missing):
        return source[:0], target[:0]
    added = [lack or TOKEN_MULTIPLE for lack in missing]  # a pair has tokens on both sides
    # not longer than those that are there, or attention would pad all of them to match
    count = max(-(-tokens // int(lengths.max())) for tokens, lengths in zip(added, (source, target), strict=True))
    added = [tokens if tokens >= count else tokens + TOKEN_MULTIPLE for tokens in added]
    of_source, of_target = (np.diff(np.arange(count + 1) * tokens // count) for tokens in added)
    return of_source, of_target


def _filled(tokens: Tensor, filling: IntArray) -> Tensor:
    return F.pad(tokens, (0, int(filling.sum())), value=PAD)


def _gather(
    tokens: npt.NDArray[np.integer], offsets: npt.NDArray[np.int64], sentences: IntArray, most: int
) -> tuple[npt.NDArray[np.int64], IntArray]:
    """Return the first tokens of some sentences end to end, at most `most` of each, and how many they are."""
    starts = offsets[sentences]
    lengths = np.minimum(offsets[sentences + 1] - starts, most)
    places = np.arange(lengths.sum()) + np.repeat(starts - (lengths.cumsum() - lengths), lengths)
    return tokens[places].astype(np.int64), lengths


def _with_mark(words: npt.NDArray[np.int64], lengths: IntArray, mark: int, *, at_end: bool) -> Tensor:
    """The same stream with a special token before or after each sentence."""
    ends = lengths.cumsum()
    return torch.from_numpy(np.insert(words, ends if at_end else ends - lengths, mark))


def steps(
    store: PairStore,
    *,
    batch_tokens: int,
    device_tokens: int,
    seed: int,
    start: DataPosition,
    rank: int,
    devices: int,
    parts: int = 1,
) -> Iterator[GlobalBatch]:
    """The steps of training from a place on, without end, for one of `devices`, which takes so many parts at once."""
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    epoch, first = start
    while True:
        plan = plan_epoch(lengths, batch_tokens, seed, epoch)
        for index in range(first, len(plan)):
            sentences = plan[index]
            mine = _slices(sentences, lengths, device_tokens, devices, parts)[rank::devices]
            target_tokens = int(lengths.target[sentences].sum())
            tokens = target_tokens + int(lengths.source[sentences].sum())
            after = DataPosition(epoch, index + 1) if index + 1 < len(plan) else DataPosition(epoch + 1, 0)
            yield GlobalBatch([assemble(store, part) for part in mine], target_tokens, tokens, after)
        epoch, first = epoch + 1, 0


def largest(
    store: PairStore, *, batch_tokens: int, device_tokens: int, seed: int, devices: int, parts: int = 1
) -> list[MicroBatch]:
    """The slices of an epoch that take most memory: the one of most tokens, and of the longest sentences."""
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    plan = plan_epoch(lengths, batch_tokens, seed, epoch=0)
    starts = np.sort(plan.bounds[:, 0])
    batches = np.split(plan.order, starts[1:])
    both = lengths.source.astype(np.int64) + lengths.target
    longest = np.maximum(lengths.source, lengths.target).astype(np.int64)
    tokens, most = np.add.reduceat(both[plan.order], starts), np.maximum.reduceat(longest[plan.order], starts)

    def heaviest(by: npt.NDArray[np.int64], weight: Callable[[IntArray], int]) -> MicroBatch:
        candidates = (batches[index] for index in np.argsort(by)[-CANDIDATES:])
        micro_batches = (
            part for batch in candidates for part in _slices(batch, lengths, device_tokens, devices, parts)
        )
        return assemble(store, max(micro_batches, key=weight))

    return [
        heaviest(tokens, lambda part: int(both[part].sum())),
        heaviest(tokens * most, lambda part: int(both[part].sum() * longest[part].max(initial=0))),
    ]


def _slices(sentences: IntArray, lengths: PairLengths, device_tokens: int, devices: int, parts: int) -> list[IntArray]:
    """A global batch, sliced for devices that each take so many parts of `device_tokens` at once."""
    return split_batch(sentences, lengths, devices * parts, device_tokens // parts)


class Prefetcher(Iterator[GlobalBatch]):
    """Takes steps from an iterator in a thread of its own, a few ahead of the training that uses them.

    Use it in a `with` block, whose end stops the thread.
    """

    def __init__(self, steps: Iterator[GlobalBatch], *, pin_memory: bool = False) -> None:
        self._queue: queue.Queue[GlobalBatch | Exception] = queue.Queue(maxsize=PREFETCHED_BATCHES)
        self._stopped = threading.Event()
        self._pin_memory = pin_memory
        self._thread = threading.Thread(target=self._fill, args=(steps,), name="batches", daemon=True)

    def __enter__(self) -> "Prefetcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def __next__(self) -> GlobalBatch:
        """The next step; an error met while assembling it is raised here."""
        item = self._queue.get()
        if isinstance(item, Exception):
            raise item
        return item

    def _fill(self, steps: Iterator[GlobalBatch]) -> None:
        try:
            for step in steps:
                if not self._put(_pinned(step) if self._pin_memory else step):
                    return
        except Exception as error:  # whatever it is, the thread that waits for a batch must hear of it
            self._put(error)

    def _put(self, item: GlobalBatch | Exception) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False


def _pinned(step: GlobalBatch) -> GlobalBatch:
    """The same step in memory that a GPU copies from without waiting."""
    return step._replace(
        micro_batches=[
            MicroBatch(_pin(batch.source), _pin(batch.target), batch.labels.pin_memory(), batch.sentences)
            for batch in step.micro_batches
        ]
    )


def _pin(stream: Packed) -> Packed:
    return Packed(
        stream.tokens.pin_memory(), stream.positions.pin_memory(), stream.offsets.pin_memory(), stream.longest
    )
