"""Encode text files as token ids in parallel processes, which import this module: it must not import torch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, compress, islice
from pathlib import Path

import numpy as np

from nmt.data.alignments import encode_alignments
from nmt.data.engine import Engine, map_chunks
from nmt.data.filters.pipeline import PIECES
from nmt.data.layout import CorpusLayout, column_name
from nmt.data.records import Encoded, EncodedSide
from nmt.data.store import Ids, LengthArray, id_type, writing
from nmt.errors import UserError
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer

CHUNK_PAIRS = 10_000
"""Pairs that a worker encodes together."""

LINK_NUMBERS = 1 << 16
"""The numbers of links are below this one."""

Chunk = tuple[bytes, ...]
"""The lines of the source side, of the target side, and of the alignments if there are any."""


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """The pairs of a chunk as ids, and how many were dropped because of their length."""

    source: Ids
    source_lengths: LengthArray
    target: Ids
    target_lengths: LengthArray
    links: tuple[Ids, LengthArray] | tuple[()]
    """The numbers of links, and how many each pair has; empty without alignments."""
    dropped: int


@dataclass(slots=True)
class SideCounts:
    """Counts of one side of a split."""

    tokens: int = 0
    longest: int = 0
    unknown: int = 0

    def add(self, ids: Ids, lengths: LengthArray) -> None:
        """Count the tokens of a chunk."""
        self.tokens += len(ids)
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.unknown += int(np.count_nonzero(ids == UNK))


@dataclass(slots=True)
class SplitCounts:
    """Counts of an encoded split."""

    pairs: int = 0
    dropped: int = 0
    source: SideCounts = field(default_factory=SideCounts)
    target: SideCounts = field(default_factory=SideCounts)

    def add(self, chunk: "EncodedChunk") -> None:
        """Count a chunk."""
        self.pairs += len(chunk.source_lengths)
        self.dropped += chunk.dropped
        self.source.add(chunk.source, chunk.source_lengths)
        self.target.add(chunk.target, chunk.target_lengths)

    def record(self) -> Encoded:
        """Return the record for the manifest."""
        source, target = (
            EncodedSide(side.tokens, round(side.tokens / max(self.pairs, 1), 2), side.longest, side.unknown)
            for side in (self.source, self.target)
        )
        return Encoded(self.pairs, {PIECES: self.dropped}, source, target)


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes chunks of text and drops pairs with more than `max_pieces` on a side; 0 keeps all."""

    tokenizer: Tokenizer
    max_pieces: int

    def encode(self, chunk: Chunk) -> EncodedChunk:
        """Encode a chunk."""
        lines = list(map(_lines, chunk))
        source, target = self.tokenizer.encode_source(lines[0]), self.tokenizer.encode_target(lines[1])
        dropped = 0
        if limit := self.max_pieces:
            kept = [len(left) <= limit and len(right) <= limit for left, right in zip(source, target, strict=True)]
            dropped = len(kept) - sum(kept)
            source, target = list(compress(source, kept)), list(compress(target, kept))
            lines = [list(compress(column, kept)) for column in lines]
        links: tuple[Ids, LengthArray] | tuple[()] = ()
        if len(lines) > 2:
            links = _flat(
                encode_alignments(self.tokenizer, (source, target), (lines[0], lines[1], lines[2])), LINK_NUMBERS
            )
        return EncodedChunk(
            *_flat(source, self.tokenizer.source_size),
            *_flat(target, self.tokenizer.target_size),
            links,
            dropped,
        )


def encode_split(
    folder: Path,
    split: str,
    languages: tuple[str, str],
    *,
    max_pieces: int,
    columns: Sequence[str],
    engine: Engine,
    advance: Callable[[int], None],
) -> Encoded:
    """Encode a split's text files into its store; return the record for the manifest.

    Args:
        folder: The folder of the corpus.
        split: The split.
        languages: The source and the target language.
        max_pieces: Pairs with more word pieces on a side are dropped; 0 keeps all.
        columns: The names of the columns that are prepared beside the two sides.
        engine: Where the work is done.
        advance: Called with the number of pairs done since the last call.
    """
    encoder = Encoder(Tokenizer.load(folder), max_pieces)
    vocabulary = max(encoder.tokenizer.source_size, encoder.tokenizer.target_size)
    counts = SplitCounts()
    texts = CorpusLayout(folder).texts(split, languages)
    chunks = _chunks(*texts, *(folder / column_name(split, name) for name in columns))
    with writing(folder, split, languages, vocabulary, columns) as writer:
        for chunk in map_chunks(engine, "encodes text", chunks, _encoding, encoder.tokenizer.models, max_pieces):
            sides = chunk.source, chunk.source_lengths, chunk.target, chunk.target_lengths
            writer.append(*sides, *chunk.links)
            counts.add(chunk)
            advance(len(chunk.source_lengths) + chunk.dropped)
        if not counts.pairs:
            raise UserError(f"no pair of {split} has {max_pieces} pieces or fewer per side: raise data.max_pieces.")
    return counts.record()


def _encoding(models: tuple[bytes, ...], max_pieces: int) -> Callable[[Chunk], EncodedChunk]:
    """Return the function that encodes chunks, given the content of the tokenizer's models."""
    return Encoder(Tokenizer(*models), max_pieces).encode


def _chunks(*paths: Path) -> Iterator[Chunk]:
    """Yield the lines of text files with one line per pair in chunks, undecoded."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        while (chunk := tuple(b"".join(islice(file, CHUNK_PAIRS)) for file in files))[0]:
            yield chunk


def _lines(content: bytes) -> list[str]:
    return content.decode().split("\n")[:-1]


def _flat(sentences: list[list[int]], vocabulary: int) -> tuple[Ids, LengthArray]:
    """Return the ids of sentences in one array, and the lengths of the sentences."""
    lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
    ids = np.fromiter(chain.from_iterable(sentences), id_type(vocabulary), int(lengths.sum(dtype=np.int64)))
    return ids, lengths
