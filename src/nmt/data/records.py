"""The JSON records of a prepared corpus: its manifest, with the result of each task, and its stores."""

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from nmt.errors import UserError

JsonObject = Mapping[str, object]
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of collecting a split: how many pairs were read, kept and dropped."""

    read: int
    kept: int
    dropped: dict[str, int]
    """Pairs dropped by each filter, in the order of the filters."""
    line_breaks: int = 0
    """Sentences whose line breaks became spaces."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Sentences of a split that the training text also holds, by side and as a pair."""

    sentences: int
    source: int
    target: int
    pair: int


@dataclass(frozen=True, slots=True)
class SampledLines:
    """Lines that a tokenizer was trained on and lines that it skipped."""

    offered: int
    used: int
    empty: int
    too_long: int
    reserved: int


@dataclass(frozen=True, slots=True)
class TrainedTokenizer:
    """The result of training the tokenizer."""

    checksum: str
    source_vocabulary: int
    target_vocabulary: int
    lines: list[SampledLines]
    """One entry per trained model: one for a joint vocabulary, else one per language."""


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """Figures of one side of an encoded split, in word pieces."""

    tokens: int
    mean_length: float
    max_length: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """The result of encoding a split."""

    pairs: int
    dropped: dict[str, int]
    source: EncodedSide
    target: EncodedSide


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task of preparation that is done."""

    inputs: dict[str, object]
    """Settings and checksums on which the task depends."""
    outputs: dict[str, str]
    """Checksums of the files that the task wrote, by name."""
    result: dict[str, object]
    seconds: float = 0.0


TOKENIZER_TASK, OVERLAP_TASK = "tokenizer", "overlap"


def collect_task(split: str) -> str:
    """Return the name of the task that collects a split's text."""
    return f"collect {split}"


def encode_task(split: str) -> str:
    """Return the name of the task that encodes a split."""
    return f"encode {split}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The tasks recorded in a manifest, by name, with typed access to their results."""

    tasks: dict[str, TaskRecord] = field(default_factory=dict)
    about: JsonObject = field(default_factory=dict)
    """The head of the manifest: what the last preparation that was finished had as source and settings."""

    @property
    def settings(self) -> JsonObject:
        """The settings of the preparation, by group."""
        found = self.about.get("settings")
        return found if isinstance(found, dict) else {}

    def splits(self, task: str) -> list[str]:
        """Return the splits that a task ("collect" or "encode") was done for, in order."""
        return [name.removeprefix(f"{task} ") for name in self.tasks if name.startswith(f"{task} ")]

    def outputs(self, task: str) -> dict[str, str]:
        """Return the checksums of the files of a task, by name."""
        return dict(self.tasks[task].outputs)

    def collected(self, split: str) -> Collected:
        """Return the result of collecting a split."""
        return self._result(collect_task(split), Collected)

    def encoded(self, split: str) -> Encoded:
        """Return the result of encoding a split."""
        return self._result(encode_task(split), Encoded)

    def tokenizer(self) -> TrainedTokenizer:
        """Return the result of training the tokenizer."""
        return self._result(TOKENIZER_TASK, TrainedTokenizer)

    def overlap(self) -> dict[str, Overlap]:
        """Return the overlap of each development and test split with the training text."""
        return self._result(OVERLAP_TASK, dict[str, Overlap])

    def _result(self, task: str, kind: type[Kind]) -> Kind:
        try:
            found: Kind = read_as(kind, self.tasks[task].result)
        except (TypeError, KeyError) as error:
            raise UserError(
                f"the manifest of the prepared corpus is of another version or damaged ({error}): "
                "delete it and run `make data` with the same settings"
            ) from error
        return found


def read_as(kind: Any, value: Any) -> Any:
    """Return a JSON value as a dataclass, or a list or dict of such; raise a TypeError if it has another form."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or not value.keys() <= hints.keys():
            raise TypeError(f"{value!r:.80} is no {getattr(kind, '__name__', kind)}")
        return kind(**{name: read_as(hints[name], each) for name, each in value.items()})  # type: ignore[operator]
    if kind is object or (kind is float and type(value) is int):
        return value
    if not isinstance(value, origin) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{value!r:.80} is no {origin.__name__}")
    if origin is list:
        return [read_as(arguments[0], each) for each in value]
    return {name: read_as(arguments[1], each) for name, each in value.items()} if origin is dict else value


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A file of a store."""

    dtype: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoreDescription:
    """The content of a `*.store.json`: how many pairs there are, and their arrays by file name."""

    pairs: int
    files: dict[str, ArrayFile]
