"""Token ids on disk, memory-mapped: a flat array of ids and an array of offsets per side."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.data.batches import Batching, IntArray, PairLengths, PlanOf, plan_epoch
from nmt.data.layout import CorpusLayout, array_names, store_name
from nmt.data.records import ArrayFile, StoreDescription
from nmt.errors import UserError
from nmt.storage.files import checksums, is_plain_name, read_json, remove, replacing, write_json

Ids = npt.NDArray[np.unsignedinteger[Any]]
Offsets = npt.NDArray[np.int64]
LengthArray = npt.NDArray[np.int32]

FlatSentences = tuple[IntArray, IntArray]
"""The ids of sentences, concatenated, and the number of ids of each sentence."""

Token = TypeVar("Token", bound=np.integer[Any])

SOURCE, TARGET = "source", "target"
"""The columns that every store has; that of the training text may have alignments, too (`nmt.data.alignments`)."""
BLOCK_PAIRS = 100_000
"""Pairs whose further columns are checked together."""
OFFSET_TYPE = np.dtype("<i8")
TOKEN_TYPES = (np.dtype("<u2"), np.dtype("<u4"))


def id_type(vocabulary: int) -> np.dtype[Any]:
    """Return the smallest type that holds every id of a vocabulary."""
    return TOKEN_TYPES[vocabulary > 65_535]


def file_names(split: str, languages: tuple[str, str], columns: Sequence[str] = ()) -> list[str]:
    """Return the names of the files of a split's store; the last one is written last and describes the others."""
    return [*array_names(split, languages, columns), store_name(split)]


class Pairs(Protocol):
    """Sentence pairs to train on, as ids without special tokens: those of a store, or of several."""

    def __len__(self) -> int:
        """Return the number of pairs."""

    @property
    def source_lengths(self) -> LengthArray:
        """The lengths of the source sentences in word pieces, computed at each call."""

    @property
    def target_lengths(self) -> LengthArray:
        """The lengths of the target sentences in word pieces, computed at each call."""

    @property
    def checksums(self) -> list[str]:
        """The checksums of the files."""

    def source(self, index: int) -> Ids:
        """Return the ids of a source sentence."""

    def target(self, index: int) -> Ids:
        """Return the ids of a target sentence."""

    def gather(self, column: str, pairs: IntArray, limit: int) -> tuple[Ids, IntArray]:
        """Return the first `limit` numbers of some pairs in a column, concatenated, and how many each pair has.

        The column is SOURCE, TARGET, or a further one; pairs of a text without this one have no numbers.
        """

    def planner(self, lengths: PairLengths, batching: Batching) -> PlanOf:
        """Return what plans epochs of pairs of these lengths."""

    def corpus_counts(self, pairs: IntArray, lengths: PairLengths) -> dict[str, tuple[int, int]]:
        """Return for each of several corpora how many of these pairs and of their tokens come from it."""

    def corpus_of(self, pair: int) -> str:
        """Return the corpus that a pair comes from; empty if there is only one."""

    def verify(self) -> None:
        """Refuse damaged files."""


@dataclass(frozen=True)
class PairStore:
    """The pairs of a split as ids without special tokens; opening it costs no memory."""

    folder: Path
    description: StoreDescription
    source_tokens: Ids
    source_offsets: Offsets
    target_tokens: Ids
    target_offsets: Offsets
    further: Mapping[str, tuple[Ids, Offsets]] = field(default_factory=dict)
    """Further columns by name: their numbers, and where those of each pair begin."""

    @classmethod
    def open(cls, folder: Path, split: str) -> "PairStore":
        """Map a split's arrays, after a check of the names and sizes of their files."""
        path = CorpusLayout(folder).store(split)
        if not path.exists():
            raise UserError(f"there is no prepared {split} data in {folder}: run `make data` with the same settings.")
        try:
            description = StoreDescription.from_json(read_json(path))
            arrays = [_map(folder, *described) for described in description.files.items()]
            names = [file.removeprefix(f"{split}.").removesuffix(".tokens") for file in list(description.files)[4::2]]
            further = dict(zip(names, zip(arrays[4::2], arrays[5::2], strict=True), strict=True))
            source, source_offsets, target, target_offsets = arrays[:4]
            store = cls(folder, description, source, source_offsets, target, target_offsets, further)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise _damaged(path) from error
        for name, (tokens, offsets) in zip(list(description.files)[1::2], store.columns.values(), strict=True):
            agree = (
                tokens.dtype in TOKEN_TYPES and offsets.dtype == OFFSET_TYPE and len(offsets) == description.pairs + 1
            )
            if not agree or offsets[0] != 0 or offsets[-1] != len(tokens):
                raise _damaged(folder / name)
        return store

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source_offsets) - 1

    @property
    def columns(self) -> dict[str, tuple[Ids, Offsets]]:
        """The arrays of all columns by name, in the order of their files."""
        source, target = (self.source_tokens, self.source_offsets), (self.target_tokens, self.target_offsets)
        return {SOURCE: source, TARGET: target, **self.further}

    @property
    def source_lengths(self) -> LengthArray:
        """The lengths of the source sentences in word pieces, computed at each call."""
        return _lengths(self.source_offsets)

    @property
    def target_lengths(self) -> LengthArray:
        """The lengths of the target sentences in word pieces, computed at each call."""
        return _lengths(self.target_offsets)

    def source(self, index: int) -> Ids:
        """Return the ids of a source sentence."""
        return self.source_tokens[self.source_offsets[index] : self.source_offsets[index + 1]]

    def target(self, index: int) -> Ids:
        """Return the ids of a target sentence."""
        return self.target_tokens[self.target_offsets[index] : self.target_offsets[index + 1]]

    @property
    def checksums(self) -> list[str]:
        """The checksums of the files, as they were written."""
        return [entry.sha256 for entry in self.description.files.values()]

    def gather(self, column: str, pairs: IntArray, limit: int) -> tuple[Ids, IntArray]:
        """See `Pairs.gather`."""
        columns = self.columns
        if column not in columns:
            return np.zeros(0, TOKEN_TYPES[0]), np.zeros(len(pairs), np.int64)
        tokens, offsets = columns[column]
        starts = offsets[pairs]
        lengths = np.minimum(offsets[pairs + 1] - starts, limit)
        return take(tokens, starts, lengths), lengths

    def planner(self, lengths: PairLengths, batching: Batching) -> PlanOf:
        """Return what plans epochs: each is one pass over all pairs."""
        return partial(plan_epoch, lengths, batching)

    def corpus_counts(self, pairs: IntArray, lengths: PairLengths) -> dict[str, tuple[int, int]]:
        """Return nothing, because this is one corpus."""
        return {}

    def corpus_of(self, pair: int) -> str:
        """Return nothing, because this is one corpus."""
        return ""

    def verify(self) -> None:
        """Compare all files with the checksums taken when they were written; check lengths and further columns."""
        files = self.description.files
        for name, found in zip(files, checksums([self.folder / name for name in files]), strict=True):
            if found != files[name].sha256:
                raise _damaged(self.folder / name)
        for name, (_, offsets) in zip(list(files)[1::2], self.columns.values(), strict=True):
            if (offsets[1:] < offsets[:-1]).any():
                raise _damaged(self.folder / name)
        for file, name in zip(list(files)[4::2], self.further, strict=True):
            for start in range(0, len(self), BLOCK_PAIRS):
                if not _are_links(self, name, np.arange(start, min(start + BLOCK_PAIRS, len(self)))):
                    raise _damaged(self.folder / file)


def _are_links(text: PairStore, column: str, pairs: IntArray) -> bool:
    """Return whether the numbers of some pairs are links between pieces that these have: target, then source piece."""
    numbers, counts = text.gather(column, pairs, sys.maxsize)
    if (counts % 2).any():
        return False
    targets, sources = numbers.reshape(-1, 2).T
    limits = (np.repeat(text.gather(side, pairs, sys.maxsize)[1], counts // 2) for side in (SOURCE, TARGET))
    return not any((index >= limit).any() for index, limit in zip((sources, targets), limits, strict=True))


def in_memory(source: FlatSentences, target: FlatSentences) -> PairStore:
    """Return a store without files, given the concatenated ids and the lengths of the sentences of each side."""
    (source_tokens, source_lengths), (target_tokens, target_lengths) = source, target
    nowhere = StoreDescription(len(source_lengths), {})
    source_ids, target_ids = source_tokens.astype(TOKEN_TYPES[1]), target_tokens.astype(TOKEN_TYPES[1])
    return PairStore(Path(), nowhere, source_ids, offsets_of(source_lengths), target_ids, offsets_of(target_lengths))


def _lengths(offsets: Offsets) -> LengthArray:
    """Return the differences of offsets, without 64-bit copies of them."""
    found = np.empty(len(offsets) - 1, np.int32)
    np.subtract(offsets[1:], offsets[:-1], out=found, casting="unsafe")
    return found


def offsets_of(lengths: IntArray) -> Offsets:
    """Return where each sentence begins in a flat array, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def take(tokens: npt.NDArray[Token], starts: IntArray, lengths: IntArray) -> npt.NDArray[Token]:
    """Return the tokens of sentences, concatenated, given where each starts and how many tokens to take."""
    taken: npt.NDArray[Token] = tokens[
        np.arange(lengths.sum()) + np.repeat(starts - (lengths.cumsum() - lengths), lengths)
    ]
    return taken


class PairWriter:
    """Appends pairs to a store."""

    def __init__(self, files: list[BinaryIO], dtype: np.dtype[Any]) -> None:
        """Write to pairs of files, tokens and offsets: of the source, of the target, and of further columns."""
        self._tokens = files[0::2]
        self._offsets = files[1::2]
        self._ends = [0] * len(self._tokens)
        self._dtypes = (dtype, dtype, *(TOKEN_TYPES[0] for _ in files[4::2]))
        self.pairs = 0
        for file in self._offsets:
            file.write(np.zeros(1, OFFSET_TYPE).tobytes())

    def append(self, *arrays: Ids | LengthArray) -> None:
        """Append pairs: for each column, the concatenated numbers, and how many each pair has."""
        for side, (ids, lengths) in enumerate(zip(arrays[0::2], arrays[1::2], strict=True)):
            offsets = self._ends[side] + np.cumsum(lengths, dtype=OFFSET_TYPE)
            self._tokens[side].write(np.ascontiguousarray(ids, self._dtypes[side]).data)
            self._offsets[side].write(offsets.data)
            self._ends[side] += len(ids)
        self.pairs += len(arrays[1])


@contextmanager
def writing(
    folder: Path, split: str, languages: tuple[str, str], vocabulary: int, columns: Sequence[str] = ()
) -> Iterator[PairWriter]:
    """Yield a writer of a split's store; the store is complete after the block, or missing if the block fails."""
    *arrays, description = file_names(split, languages, columns)
    remove(folder / description)
    dtype = id_type(vocabulary)
    with ExitStack() as stack:
        partials = [stack.enter_context(replacing(folder / name)) for name in arrays]
        with ExitStack() as files:
            writer = PairWriter([files.enter_context(partial.open("wb")) for partial in partials], dtype)
            yield writer
    sums = checksums([folder / name for name in arrays])
    kinds = [kind for column in (dtype, dtype, *(TOKEN_TYPES[0] for _ in columns)) for kind in (column, OFFSET_TYPE)]
    entries = {
        name: ArrayFile(kind.str, (folder / name).stat().st_size, sum_)
        for name, kind, sum_ in zip(arrays, kinds, sums, strict=True)
    }
    write_json(folder / description, asdict(StoreDescription(writer.pairs, entries)))


def _map(folder: Path, name: str, entry: ArrayFile) -> npt.NDArray[Any]:
    path = folder / name
    if not is_plain_name(name) or not path.is_file() or path.stat().st_size != entry.bytes:
        raise _damaged(path)
    kind = np.dtype(entry.dtype)
    if kind not in (*TOKEN_TYPES, OFFSET_TYPE):
        raise _damaged(path)
    if not entry.bytes:
        return np.zeros(0, kind)
    return np.memmap(path, dtype=kind, mode="r").view(np.ndarray)


def _damaged(path: Path) -> UserError:
    return UserError(f"{path} is missing, damaged or from another preparation: run `make data` with the same settings.")
