"""Encode text files as token ids in parallel processes, which import this module: it must not import torch."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, compress, islice
from pathlib import Path

import numpy as np

from nmt.data.alignments import encode_alignments
from nmt.data.corpora import CorpusSplit
from nmt.data.engine import Engine, map_chunks
from nmt.data.filters.pipeline import PIECES
from nmt.data.manifest import Encoded, EncodedSide
from nmt.data.store import Ids, LengthArray, id_type, writing
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer

CHUNK_PAIRS = 10_000
"""Pairs that a worker encodes together."""
LINK_NUMBERS = 1 << 16
"""The numbers of links are below this one."""

Chunk = tuple[bytes, ...]
"""The lines of the source side, of the target side, and of the alignments if there are any."""
Flat = tuple[Ids, LengthArray]
"""The numbers of sentences in one array, and how many each sentence has."""


EncodedChunk = tuple[list[Flat], int]
"""The ids of the source side, of the target side, and the links if there are alignments; and how many pairs were
dropped because of their length."""


def encode_split(
    folder: Path, split: CorpusSplit, max_pieces: int, engine: Engine, advance: Callable[[int], None]
) -> Encoded:
    """Encode a split's text files into its store; return the record for the manifest.

    Args:
        folder: The folder of the corpus.
        split: The split.
        max_pieces: Pairs with more word pieces on a side are dropped; 0 keeps all.
        engine: Where the work is done.
        advance: Called with the number of pairs done since the last call.
    """
    tokenizer = Tokenizer.load(folder)
    paths = [folder / name for name in split.texts]
    vocabulary = max(tokenizer.source_size, tokenizer.target_size)
    dropped = 0
    with writing(folder, split.name, split.data.languages, vocabulary, split.columns) as writer:
        for columns, count in map_chunks(
            engine, "encodes text", _chunks(paths), encoding, tokenizer.models, max_pieces
        ):
            writer.append(*chain.from_iterable(columns))
            dropped += count
            advance(len(columns[0][1]) + count)
        if not writer.pairs:
            raise UserError(
                f"no pair of {split.name} has {max_pieces} pieces or fewer per side: raise data.max_pieces."
            )
    return Encoded(writer.pairs, {PIECES: dropped}, *map(EncodedSide, writer.tokens[:2]))


def _chunks(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Yield the lines of text files with one line per pair in chunks, undecoded."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        while (chunk := tuple(b"".join(islice(file, CHUNK_PAIRS)) for file in files))[0]:
            yield chunk


def encoding(models: tuple[bytes, ...], max_pieces: int) -> Callable[[Chunk], EncodedChunk]:
    """Return the function that encodes chunks, and drops pairs with more than `max_pieces` on a side; 0 keeps all."""
    tokenizer = Tokenizer(*models)

    def encode(chunk: Chunk) -> EncodedChunk:
        lines = [content.decode().split("\n")[:-1] for content in chunk]
        source, target = tokenizer.encode_source(lines[0]), tokenizer.encode_target(lines[1])
        limit = max_pieces or sys.maxsize
        kept = [len(left) <= limit and len(right) <= limit for left, right in zip(source, target, strict=True)]
        source, target = list(compress(source, kept)), list(compress(target, kept))
        lines = [list(compress(column, kept)) for column in lines]
        columns = [_flat(source, tokenizer.source_size), _flat(target, tokenizer.target_size)]
        if len(lines) > 2:
            links = encode_alignments(tokenizer, (source, target), (lines[0], lines[1], lines[2]))
            columns.append(_flat(links, LINK_NUMBERS))
        return columns, len(kept) - sum(kept)

    return encode


def _flat(sentences: list[list[int]], vocabulary: int) -> Flat:
    """Return the ids of sentences in one array, and the lengths of the sentences."""
    lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
    ids = np.fromiter(chain.from_iterable(sentences), id_type(vocabulary), int(lengths.sum(dtype=np.int64)))
    return ids, lengths
