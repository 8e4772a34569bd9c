"""The JSON records of a prepared corpus: its manifest, with the result of each task, and its stores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from nmt.errors import UserError

JsonObject = Mapping[str, object]
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


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
class TaskRecord:
    """A task of preparation that is done."""

    inputs: JsonObject
    """Settings and checksums on which the task depends."""
    outputs: dict[str, str]
    """Checksums of the files that the task wrote, by name."""
    result: JsonObject
    seconds: float = 0.0


def naming_damage(read: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Turn the errors of reading a record into one that says what to do."""

    @wraps(read)
    def reading(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return read(*args, **kwargs)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise UserError(
                f"the manifest of the prepared corpus is of another version or damaged ({error}): "
                "delete it and run `make data` with the same settings"
            ) from error

    return reading


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

    @naming_damage
    def collected(self, split: str) -> Collected:
        """Return the result of collecting a split."""
        return Collected(**self.result(collect_task(split)))

    @naming_damage
    def encoded(self, split: str) -> Encoded:
        """Return the result of encoding a split."""
        result = self.result(encode_task(split))
        source, target = (EncodedSide(**result.pop(side)) for side in ("source", "target"))
        return Encoded(source=source, target=target, **result)

    @naming_damage
    def tokenizer(self) -> TrainedTokenizer:
        """Return the result of training the tokenizer."""
        result = self.result(TOKENIZER_TASK)
        return TrainedTokenizer(lines=[SampledLines(**lines) for lines in result.pop("lines")], **result)

    def result(self, task: str) -> dict[str, Any]:
        """Return the result of a task as it was recorded."""
        return dict(self.tasks[task].result)


TOKENIZER_TASK = "tokenizer"


def collect_task(split: str) -> str:
    """Return the name of the task that collects a split's text."""
    return f"collect {split}"


def references_task(split: str) -> str:
    """Return the name of the task that writes the further references of a split."""
    return f"references {split}"


def encode_task(split: str) -> str:
    """Return the name of the task that encodes a split."""
    return f"encode {split}"


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

    @classmethod
    def from_json(cls, content: JsonObject) -> "StoreDescription":
        """Read a description; raise a ValueError, TypeError, KeyError or AttributeError for a damaged one."""
        files = content["files"]
        if not isinstance(files, dict):
            raise TypeError("files must be an object")
        return cls(int(str(content["pairs"])), {name: ArrayFile(**entry) for name, entry in files.items()})
