"""Text files to token ids, in several processes. Workers import this module: nothing heavy may be imported here."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from nmt.compute.processes import SPAWN, follow_parent
from nmt.data.store import Ids, LengthArray, id_type, writing
from nmt.errors import UserError
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer

CHUNK = 10_000
"""Pairs that a worker encodes at once."""

Chunk = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A chunk's pairs as ids, and how many were left out for their length."""

    source: Ids
    source_lengths: LengthArray
    target: Ids
    target_lengths: LengthArray
    dropped: int


@dataclass(slots=True)
class Side:
    """Figures of one side of a split."""

    tokens: int = 0
    longest: int = 0
    unknown: int = 0

    def add(self, ids: Ids, lengths: LengthArray) -> None:
        """Count a chunk."""
        self.tokens += len(ids)
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.unknown += int(np.count_nonzero(ids == UNK))


@dataclass(slots=True)
class Statistics:
    """Figures of an encoded split."""

    pairs: int = 0
    dropped: int = 0
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)

    def as_dict(self) -> dict[str, Any]:
        """As the manifest has it."""
        sides = {
            name: {
                "tokens": side.tokens,
                "mean_length": round(side.tokens / max(self.pairs, 1), 2),
                "max_length": side.longest,
                "unknown": side.unknown,
            }
            for name, side in (("source", self.source), ("target", self.target))
        }
        return {"pairs": self.pairs, "dropped": {"pieces": self.dropped}, **sides}


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes chunks of text; `max_pieces` drops longer pairs, 0 keeps all."""

    tokenizer: Tokenizer
    max_pieces: int

    def encode(self, chunk: Chunk) -> Encoded:
        """Encode a chunk: the lines of the source side, and those of the target side."""
        source = self.tokenizer.encode_source(_lines(chunk[0]))
        target = self.tokenizer.encode_target(_lines(chunk[1]))
        dropped = 0
        if most := self.max_pieces:
            keep = [len(left) <= most and len(right) <= most for left, right in zip(source, target, strict=True)]
            dropped = len(keep) - sum(keep)
            source, target = list(compress(source, keep)), list(compress(target, keep))
        return Encoded(*_flat(source, self.tokenizer.source_size), *_flat(target, self.tokenizer.target_size), dropped)


def encode_split(
    folder: Path,
    split: str,
    languages: tuple[str, str],
    *,
    max_pieces: int,
    workers: int,
    advance: Callable[[int], None],
) -> dict[str, Any]:
    """Encode a split's text files into its store; give its figures."""
    encoder = Encoder(Tokenizer.load(folder), max_pieces)
    vocabulary = max(encoder.tokenizer.source_size, encoder.tokenizer.target_size)
    figures = Statistics()
    chunks = _chunks(*(folder / f"{split}.{language}" for language in languages))
    with writing(folder, split, languages, vocabulary) as writer:
        for encoded in _encode_all(chunks, encoder, folder, workers):
            writer.append(encoded.source, encoded.source_lengths, encoded.target, encoded.target_lengths)
            figures.pairs += len(encoded.source_lengths)
            figures.dropped += encoded.dropped
            figures.source.add(encoded.source, encoded.source_lengths)
            figures.target.add(encoded.target, encoded.target_lengths)
            advance(len(encoded.source_lengths) + encoded.dropped)
        if not figures.pairs:
            raise UserError(f"no pair of {split} has {max_pieces} pieces or fewer a side: raise data.max_pieces.")
    return figures.as_dict()


def _encode_all(chunks: Iterator[Chunk], encoder: Encoder, folder: Path, workers: int) -> Iterator[Encoded]:
    """Encode chunks in order; in this process where there is one worker or one chunk."""
    first = list(islice(chunks, 2))
    chunks = chain(first, chunks)
    if workers == 1 or len(first) == 1:
        yield from map(encoder.encode, chunks)
        return
    settings = (folder, encoder.max_pieces)
    with ProcessPoolExecutor(workers, SPAWN, initializer=_start_worker, initargs=settings) as pool:
        waiting: deque[Future[Encoded]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_work, chunk))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                "a process that encodes text was killed, perhaps for want of memory: try runtime.workers=1."
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_worker: Encoder


def _start_worker(folder: Path, max_pieces: int) -> None:
    follow_parent()
    global _worker  # noqa: PLW0603 (a process pool has no other way to keep what its workers load once)
    _worker = Encoder(Tokenizer.load(folder), max_pieces)


def _work(chunk: Chunk) -> Encoded:
    return _worker.encode(chunk)


def _chunks(source: Path, target: Path) -> Iterator[Chunk]:
    with source.open("rb") as left, target.open("rb") as right:
        while lines := b"".join(islice(left, CHUNK)):
            yield lines, b"".join(islice(right, CHUNK))


def _lines(content: bytes) -> list[str]:
    return content.decode().split("\n")[:-1]


def _flat(sentences: list[list[int]], vocabulary: int) -> tuple[Ids, LengthArray]:
    lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
    ids = np.fromiter(chain.from_iterable(sentences), id_type(vocabulary), int(lengths.sum(dtype=np.int64)))
    return ids, lengths
