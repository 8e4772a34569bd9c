"""Global batches as tensors: their text is read, split into micro-batches, and packed.

Streams are filled up to sizes that `Shapes` chooses, with short sentences of padding that the loss ignores: devices
prefer few sizes.
"""

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.data import alignments
from nmt.data.batches import Batching, IntArray, PairLengths, planned_batches, split_batch
from nmt.data.noise import Noise
from nmt.data.shapes import ROOM_TO_GROW, Shapes
from nmt.data.store import SIDES, Ids, PairStore
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS, PAD

NO_LIMIT = (sys.maxsize, sys.maxsize)
"""The largest numbers of word pieces of a source and of a target sentence, if there is no limit."""
CPU_SHAPES = Shapes()
"""The default sizes of streams."""
PREFETCHED_BATCHES = 4
"""Global batches assembled ahead of the one that is being trained on."""


class Links(NamedTuple):
    """The word alignments of a micro-batch: N links from target tokens to source tokens."""

    targets: Tensor
    """(N,) row of the target stream that predicts the linked piece; the next row reads it."""
    sources: Tensor
    """(N,) position of the linked piece in its source sentence."""
    weights: Tensor
    """(N,) weight in the loss. Divided by the labels of the global batch, those of a target token sum to 1 / the number
    of linked target tokens of the global batch."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The sentence pairs of one forward and backward pass on one device."""

    source: Packed
    """Source sentences, each with its end mark."""
    target: Packed
    """Input of the decoder: a start mark, then the translation."""
    labels: Tensor
    """(T,) expected output of the decoder: the translation, then an end mark. PAD is left out of the loss."""
    sentences: IntArray
    """Indices of these sentence pairs in the corpus."""
    links: Links | None = None
    """The word alignments, if they are asked for."""

    def to(self, device: torch.device) -> "MicroBatch":
        """Return this micro-batch on another device."""
        asynchronous = device.type == "cuda"
        return self._with(lambda each: each.to(device), lambda each: each.to(device, non_blocking=asynchronous))

    def pinned(self) -> "MicroBatch":
        """Return this micro-batch in page-locked memory."""
        return self._with(Packed.pinned, Tensor.pin_memory)

    def _with(self, packed: Callable[[Packed], Packed], tensor: Callable[[Tensor], Tensor]) -> "MicroBatch":
        links = self.links and Links(*map(tensor, self.links))
        return MicroBatch(packed(self.source), packed(self.target), tensor(self.labels), self.sentences, links)


class DataPosition(NamedTuple):
    """A position in the stream of global batches; training resumes from it without reading what comes before."""

    epoch: int = 0
    batch: int = 0
    """The number of the global batch in the epoch."""


class GlobalBatch(NamedTuple):
    """A training step: the micro-batches of this device, and the size of the batch over all devices."""

    micro_batches: list[MicroBatch]
    """Micro-batches over which this device accumulates the gradient."""
    target_tokens: int
    """Labels in the global batch, over all devices; the loss is divided by it."""
    tokens: int
    """Source and target tokens in the global batch, special ones included."""
    after: DataPosition
    """Position of the next global batch."""
    corpora: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """How many pairs and tokens come from each of several corpora."""

    def pinned(self) -> "GlobalBatch":
        """Return this batch in page-locked memory, from which a GPU copies asynchronously."""
        return self._replace(micro_batches=[each.pinned() for each in self.micro_batches])


def assemble(
    store: PairStore,
    sentences: IntArray,
    max_pieces: tuple[int, int] = NO_LIMIT,
    shapes: Shapes = CPU_SHAPES,
    link_weight: float | None = None,
) -> MicroBatch:
    """Pack sentence pairs into a micro-batch.

    Args:
        store: The corpus.
        sentences: Indices of the pairs. If there are none, the micro-batch has no labels and adds nothing to the loss.
        max_pieces: Each source and each target sentence is cut after this many word pieces.
        shapes: The sizes that streams are filled up to.
        link_weight: The weight that the links of a target token share; None for no links. Sentences must not be cut.
    """
    links = None
    if len(sentences):
        pieces, lengths = zip(*map(store.gather, SIDES, [sentences] * 2, max_pieces), strict=True)
        source = _with_mark(pieces[0], lengths[0], EOS, at_end=True)
        target = _with_mark(pieces[1], lengths[1], BOS, at_end=False)
        labels = _with_mark(pieces[1], lengths[1], EOS, at_end=True)
        real = [each + 1 for each in lengths]
        if link_weight is not None:
            links = _links(store, sentences, real[1], link_weight)
    else:
        source, target, labels = torch.tensor([EOS]), torch.tensor([BOS]), torch.tensor([PAD])
        real = [np.array([1])] * 2
    filled = [np.append(*each) for each in zip(real, shapes.filler(*real), strict=True)]
    decoder_input = _packed(target, filled[1], shapes)
    labels = _filled(labels, len(decoder_input.tokens))
    return MicroBatch(_packed(source, filled[0], shapes), decoder_input, labels, sentences, links)


def _with_mark(pieces: Ids, lengths: IntArray, mark: int, *, at_end: bool) -> Tensor:
    """Insert a special token before or after each sentence of a stream."""
    ends = lengths.cumsum()
    return torch.from_numpy(np.insert(pieces.astype(np.int64), ends if at_end else ends - lengths, mark))


def _packed(tokens: Tensor, lengths: IntArray, shapes: Shapes) -> Packed:
    """Pack tokens, followed by filler, into sentences of the given lengths, followed by sentences without tokens."""
    without_tokens = shapes.sentences(len(lengths)) - len(lengths)
    stream = Packed.from_lengths(
        _filled(tokens, int(lengths.sum())), torch.from_numpy(np.pad(lengths, (0, without_tokens)))
    )
    return replace(stream, longest=shapes.longest(stream.longest))


def _filled(tokens: Tensor, count: int) -> Tensor:
    return F.pad(tokens, (0, count - len(tokens)), value=PAD)


def _links(text: PairStore, pairs: IntArray, target_lengths: IntArray, weight: float) -> Links:
    """Return the links of a micro-batch, given the lengths of its target sentences with their marks."""
    owners, links = _read_links(text, pairs)
    starts = target_lengths.cumsum() - target_lengths
    targets = starts[owners] + links[:, 0]  # row 0, the start mark, predicts piece 0
    _, token, counts = np.unique(targets, return_inverse=True, return_counts=True)
    weights = torch.from_numpy((weight / counts)[token]).to(torch.float32)
    return Links(torch.from_numpy(targets), torch.from_numpy(links[:, 1]), weights)


def _link_weight(text: PairStore, pairs: IntArray, labels: int) -> float:
    """Return the weight that the links of a target token share in a global batch with this number of labels."""
    owners, links = _read_links(text, pairs)
    linked = len(np.unique(owners << 32 | links[:, 0]))
    return labels / linked if linked else 0.0


def _read_links(text: PairStore, pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each link the number of its pair, from 0, and (N, 2) target piece and source piece."""
    numbers, counts = text.gather(alignments.NAME, pairs)
    return np.repeat(np.arange(len(pairs)), counts // 2), numbers.astype(np.int64).reshape(-1, 2)


def _corpus_counts(store: PairStore, sentences: IntArray, lengths: PairLengths) -> dict[str, tuple[int, int]]:
    """Return for each of several corpora how many of these pairs and of their tokens come from it."""
    if not store.corpora:
        return {}
    corpora, count = store.corpora_of(sentences), len(store.corpora)
    tokens = np.bincount(corpora, lengths.source[sentences] + lengths.target[sentences], count).astype(int)
    pairs = np.bincount(corpora, minlength=count)
    return dict(zip(store.corpora, zip(pairs.tolist(), tokens.tolist(), strict=True), strict=True))


def global_batches(
    store: PairStore,
    batching: Batching,
    *,
    device_tokens: int,
    start: DataPosition,
    rank: int,
    devices: int,
    threads: int = 1,
    shapes: Shapes = CPU_SHAPES,
    noise: Noise | None = None,
    with_links: bool = False,
) -> Iterator[GlobalBatch]:
    """Yield the global batches of training, endlessly.

    Args:
        store: The training text.
        batching: How the text is divided into global batches.
        device_tokens: The largest number of source tokens, and of target tokens, in the micro-batches that a device
            processes simultaneously; 0 for no limit.
        start: The position of the first global batch.
        rank: The device whose micro-batches are assembled.
        devices: How many devices share each global batch.
        threads: How many micro-batches a device runs in parallel.
        shapes: The sizes that the streams of a micro-batch are filled up to; the batches do not depend on them.
        noise: Changes the text of each global batch.
        with_links: Whether micro-batches have word alignments.
    """
    lengths = store.pair_lengths
    for epoch, plan, index in planned_batches(store.planner(lengths, batching), start.epoch, start.batch):
        sentences = plan[index]
        text, pairs, sizes, limit = store, sentences, lengths, device_tokens
        if noise:  # the plan is made from the lengths before it, and micro-batches from those after it
            text = noise(store, sentences, epoch, index)
            pairs = np.arange(len(text))
            sizes = text.pair_lengths
            # micro-batches that became too long are split, so that none needs more memory than was checked
            limit = device_tokens or int(-(-batching.tokens // devices) * ROOM_TO_GROW)
        on_this_device = split_batch(pairs, sizes, devices * threads, limit // threads)[rank::devices]
        target_tokens = int(sizes.target[pairs].sum())
        tokens = target_tokens + int(sizes.source[pairs].sum())
        after = DataPosition(epoch, index + 1) if index + 1 < len(plan) else DataPosition(epoch + 1)
        link_weight = _link_weight(text, pairs, target_tokens) if with_links else None
        micro_batches = [assemble(text, each, shapes=shapes, link_weight=link_weight) for each in on_this_device]
        if noise:  # the numbers of the pairs in the training text, not in the changed text
            micro_batches = [replace(each, sentences=sentences[each.sentences]) for each in micro_batches]
        yield GlobalBatch(micro_batches, target_tokens, tokens, after, _corpus_counts(store, sentences, lengths))


def prefetched(batches: Iterator[GlobalBatch], *, pin_memory: bool = False) -> Generator[GlobalBatch, None, None]:
    """Yield batches that a background thread assembles, a few ahead; closing the iterator ends the thread.

    Page-locked memory speeds up their copy to a GPU.
    """

    def fetch() -> GlobalBatch | None:
        batch = next(batches, None)
        return batch.pinned() if batch and pin_memory else batch

    thread = ThreadPoolExecutor(1, "batches")
    try:
        waiting = deque(thread.submit(fetch) for _ in range(PREFETCHED_BATCHES))
        while batch := waiting.popleft().result():
            waiting.append(thread.submit(fetch))
            yield batch
    finally:
        thread.shutdown(cancel_futures=True)
