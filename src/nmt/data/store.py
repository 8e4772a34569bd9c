"""Token ids on disk, memory-mapped: a flat array of ids and an array of offsets per side."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.data.batches import Batching, IntArray, PairLengths, PlanOf, plan_epoch
from nmt.errors import UserError
from nmt.storage.files import checksums, is_plain_name, read_json, remove, replacing, write_json

Ids = npt.NDArray[np.unsignedinteger[Any]]
Offsets = npt.NDArray[np.int64]
LengthArray = npt.NDArray[np.int32]

FlatSentences = tuple[IntArray, IntArray]
"""The ids of sentences, concatenated, and the number of ids of each sentence."""

Token = TypeVar("Token", bound=np.integer[Any])

SIDES = SOURCE, TARGET = "source", "target"
"""The columns that every store has; that of the training text may have alignments, too (`nmt.data.alignments`)."""
OFFSET_TYPE = np.dtype("<i8")
TOKEN_TYPES = (np.dtype("<u2"), np.dtype("<u4"))
DESCRIPTION = ".store.json"
"""The end of the name of the file that describes the arrays of a split."""


def id_type(vocabulary: int) -> np.dtype[Any]:
    """Return the smallest type that holds every id of a vocabulary."""
    return TOKEN_TYPES[vocabulary > 65_535]


def file_names(split: str, languages: tuple[str, str], columns: Sequence[str] = ()) -> list[str]:
    """Return the names of the files of a split's store; the last one is written last and describes the others."""
    arrays = [f"{split}.{each}.{array}" for each in (*languages, *columns) for array in ("tokens", "offsets")]
    return [*arrays, f"{split}{DESCRIPTION}"]


class Column(NamedTuple):
    """Numbers of all pairs, such as the ids of their source sentences."""

    tokens: Ids
    offsets: Offsets
    """Where those of each pair begin, and where the last ones end."""


class PairStore:
    """Sentence pairs as ids without special tokens: those of a split, or of several (`MixedStore`)."""

    corpora: tuple[str, ...] = ()
    """The names of the corpora that the pairs come from, if there are several."""

    def __init__(self, columns: Mapping[str, Column], folder: Path = Path(), files: Mapping[str, str] | None = None):
        """Take the columns, SOURCE, TARGET, then further ones, and their files.

        Args:
            columns: The numbers of each column.
            folder: The folder of the files.
            files: The checksums of the files by name, of the tokens and the offsets of each column in turn.
        """
        self.columns, self.folder, self.files = columns, folder, files or {}

    @classmethod
    def open(cls, folder: Path, split: str) -> "PairStore":
        """Map a split's arrays, after a check of the names and sizes of their files; this costs no memory."""
        path = folder / f"{split}{DESCRIPTION}"
        if not path.exists():
            raise UserError(f"there is no prepared {split} data in {folder}: run `make data` with the same settings.")
        try:
            described = read_json(path)
            pairs = int(described["pairs"])
            files = {name: entry["sha256"] for name, entry in described["files"].items()}
            arrays = [_map(folder, name, entry) for name, entry in described["files"].items()]
            further = [name.removeprefix(f"{split}.").removesuffix(".tokens") for name in [*files][4::2]]
            columns = dict(zip([SOURCE, TARGET, *further], map(Column, arrays[::2], arrays[1::2]), strict=True))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise _damaged(path) from error
        for name, (tokens, offsets) in zip([*files][1::2], columns.values(), strict=True):
            agree = tokens.dtype in TOKEN_TYPES and offsets.dtype == OFFSET_TYPE
            if not agree or len(offsets) != pairs + 1 or offsets[0] != 0 or offsets[-1] != len(tokens):
                raise _damaged(folder / name)
        return PairStore(columns, folder, files)

    @property
    def checksums(self) -> list[str]:
        """The checksums of the files, as they were written."""
        return [*self.files.values()]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.columns[SOURCE].offsets) - 1

    def lengths(self, column: str) -> LengthArray:
        """Return how many numbers each pair has in a column, computed at each call, without a 64-bit copy."""
        offsets = self.columns[column].offsets
        found = np.empty(len(self), np.int32)
        np.subtract(offsets[1:], offsets[:-1], out=found, casting="unsafe")
        return found

    @property
    def pair_lengths(self) -> PairLengths:
        """The lengths of both sides in tokens, which include the marks that the model reads."""
        return PairLengths.with_marks(self.lengths(SOURCE), self.lengths(TARGET))

    def gather(self, column: str, pairs: IntArray, limit: int = sys.maxsize) -> tuple[Ids, IntArray]:
        """Return the first `limit` numbers of some pairs in a column, concatenated, and how many each pair has.

        The column is SOURCE, TARGET, or a further one; pairs of a text without this one have no numbers.
        """
        if column not in self.columns:
            return np.zeros(0, TOKEN_TYPES[0]), np.zeros(len(pairs), np.int64)
        tokens, offsets = self.columns[column]
        starts = offsets[pairs]
        lengths = np.minimum(offsets[pairs + 1] - starts, limit)
        return take(tokens, starts, lengths), lengths

    def source(self, index: int) -> Ids:
        """Return the ids of a source sentence."""
        return self.gather(SOURCE, np.array([index]))[0]

    def target(self, index: int) -> Ids:
        """Return the ids of a target sentence."""
        return self.gather(TARGET, np.array([index]))[0]

    def verify(self) -> None:
        """Refuse files with other checksums than when they were written, and offsets that decrease."""
        found = checksums([self.folder / name for name in self.files])
        damaged = [name for name, sum_ in zip(self.files, found, strict=True) if sum_ != self.files[name]]
        for name, column in zip([*self.files][1::2], self.columns.values(), strict=True):
            if (column.offsets[1:] < column.offsets[:-1]).any():
                damaged.append(name)
        if damaged:
            raise _damaged(self.folder / damaged[0])

    def planner(self, lengths: PairLengths, batching: Batching) -> PlanOf:
        """Return what plans epochs of pairs of these lengths: each is one pass over all pairs."""
        return partial(plan_epoch, lengths, batching)

    def corpora_of(self, pairs: IntArray) -> IntArray:
        """Return for each pair the index of its corpus."""
        return np.zeros(len(pairs), np.int64)


def in_memory(source: FlatSentences, target: FlatSentences) -> PairStore:
    """Return a store without files, given the concatenated ids and the lengths of the sentences of each side."""
    sides = {SOURCE: source, TARGET: target}
    return PairStore({name: Column(ids.astype(TOKEN_TYPES[1]), _offsets(n)) for name, (ids, n) in sides.items()})


def _offsets(lengths: IntArray) -> Offsets:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def take(tokens: npt.NDArray[Token], starts: IntArray, lengths: IntArray) -> npt.NDArray[Token]:
    """Return the tokens of sentences, concatenated, given where each starts and how many tokens to take."""
    taken: npt.NDArray[Token] = tokens[
        np.arange(lengths.sum()) + np.repeat(starts - (lengths.cumsum() - lengths), lengths)
    ]
    return taken


class PairWriter:
    """Appends pairs to a store."""

    def __init__(self, files: list[BinaryIO], dtypes: Sequence[np.dtype[Any]]) -> None:
        """Write to files, of tokens and of offsets in turn, with a type of tokens for each pair of files."""
        self._files = list(zip(files[0::2], files[1::2], dtypes, strict=True))
        self.pairs, self.tokens = 0, [0] * len(self._files)
        """How many pairs, and numbers of each column, are written."""
        for _, offsets, _ in self._files:
            offsets.write(np.zeros(1, OFFSET_TYPE).tobytes())

    def append(self, *arrays: IntArray) -> None:
        """Append pairs: for each column, the concatenated numbers, and how many each pair has."""
        for column, (tokens, offsets, dtype) in enumerate(self._files):
            ids, lengths = arrays[2 * column : 2 * column + 2]
            tokens.write(np.ascontiguousarray(ids, dtype).data)
            offsets.write((self.tokens[column] + np.cumsum(lengths, dtype=OFFSET_TYPE)).data)
            self.tokens[column] += len(ids)
        self.pairs += len(arrays[1])


@contextmanager
def writing(
    folder: Path, split: str, languages: tuple[str, str], vocabulary: int, columns: Sequence[str] = ()
) -> Iterator[PairWriter]:
    """Yield a writer of a split's store; the store is complete after the block, or missing if the block fails."""
    *arrays, description = file_names(split, languages, columns)
    remove(folder / description)
    paths = [folder / name for name in arrays]
    dtypes = [*[id_type(vocabulary)] * 2, *[TOKEN_TYPES[0]] * len(columns)]
    with ExitStack() as stack:
        partials = [stack.enter_context(replacing(path)) for path in paths]
        with ExitStack() as files:
            writer = PairWriter([files.enter_context(partial.open("wb")) for partial in partials], dtypes)
            yield writer
    types = [each.str for dtype in dtypes for each in (dtype, OFFSET_TYPE)]
    entries = [
        {"dtype": kind, "bytes": path.stat().st_size, "sha256": sum_}
        for kind, path, sum_ in zip(types, paths, checksums(paths), strict=True)
    ]
    write_json(folder / description, {"pairs": writer.pairs, "files": dict(zip(arrays, entries, strict=True))})


def _map(folder: Path, name: str, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    path, dtype = folder / name, np.dtype(entry["dtype"])
    is_known = is_plain_name(name) and dtype in (*TOKEN_TYPES, OFFSET_TYPE)
    if not is_known or not path.is_file() or path.stat().st_size != entry["bytes"]:
        raise _damaged(path)
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray) if entry["bytes"] else np.zeros(0, dtype)


def _damaged(path: Path) -> UserError:
    return UserError(f"{path} is missing, damaged or from another preparation: run `make data` with the same settings.")
