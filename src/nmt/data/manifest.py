"""The manifest of a prepared corpus: the tasks of preparation, with what each depends on, wrote and found."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nmt.errors import UserError
from nmt.storage.files import checksums, is_plain_name, read_json, record_of, remove, seal, write_json

MANIFEST = "manifest.json"
TOKENIZER_TASK, OVERLAP_TASK = "tokenizer", "overlap"
JsonObject = Mapping[str, object]
Record = TypeVar("Record")


@dataclass(slots=True)
class Collected:
    """The result of collecting a split: how many pairs were read, kept and dropped."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Pairs dropped by each filter, in the order of the filters."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Sentences of a split that the training text also holds, by side and as a pair."""

    sentences: int
    source: int
    target: int
    pair: int


@dataclass(frozen=True, slots=True)
class TrainedTokenizer:
    """The result of making the tokenizer."""

    checksum: str
    source_vocabulary: int
    target_vocabulary: int


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """Figures of one side of an encoded split."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """The result of encoding a split."""

    pairs: int
    dropped: dict[str, int]
    source: EncodedSide
    target: EncodedSide


class Task(NamedTuple):
    """A task of preparation, which runs unless the manifest says that it is done."""

    name: str
    inputs: JsonObject
    """Everything on which the outputs depend, as JSON; None equals a missing input."""
    outputs: Sequence[str]
    """The names of the files that it writes."""
    run: Callable[[], Any]
    """Write the files, and return the result for the manifest, a dataclass or JSON."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task that is done."""

    inputs: dict[str, object]
    outputs: dict[str, str]
    """Checksums of the files that it wrote, by name."""
    result: dict[str, Any]
    seconds: float = 0.0


def collect_task(split: str) -> str:
    """Return the name of the task that collects a split's text."""
    return f"collect {split}"


def encode_task(split: str) -> str:
    """Return the name of the task that encodes a split."""
    return f"encode {split}"


@dataclass
class Manifest:
    """The tasks of a corpus that are done, by name."""

    folder: Path
    tasks: dict[str, TaskRecord] = field(default_factory=dict)
    about: JsonObject = field(default_factory=dict)
    """The head of the manifest: the source and the settings of the preparation that was finished last."""

    @property
    def settings(self) -> JsonObject:
        """The settings of the preparation, by group."""
        found = self.about.get("settings")
        return found if isinstance(found, dict) else {}

    def splits(self, task: str) -> list[str]:
        """Return the splits that a task ("collect" or "encode") was done for, in order."""
        return [name.removeprefix(f"{task} ") for name in self.tasks if name.startswith(f"{task} ")]

    def outputs(self, task: str) -> dict[str, str]:
        """Return the checksums of the files of a task, by name; none if it is not done."""
        return self.tasks[task].outputs if task in self.tasks else {}

    def collected(self, split: str) -> Collected:
        """Return the result of collecting a split."""
        return self._result(Collected, collect_task(split))

    def encoded(self, split: str) -> Encoded:
        """Return the result of encoding a split."""
        return self._result(Encoded, encode_task(split))

    def tokenizer(self) -> TrainedTokenizer:
        """Return the result of making the tokenizer."""
        return self._result(TrainedTokenizer, TOKENIZER_TASK)

    def overlap(self) -> dict[str, Overlap]:
        """Return the overlap of each development and test split with the training text."""
        return self._result(dict[str, Overlap], OVERLAP_TASK)

    def _result(self, kind: type[Record], task: str) -> Record:
        try:
            return record_of(kind, self.tasks[task].result)
        except (KeyError, ValueError) as error:
            raise UserError(
                f"{self.folder / MANIFEST} is of another version or damaged (its task {task}): "
                "delete it and run `make data` with the same settings"
            ) from error

    def save(self) -> None:
        """Write the manifest, unless it is written already."""
        path = self.folder / MANIFEST
        content = {**self.about, "steps": {name: asdict(record) for name, record in self.tasks.items()}}
        content["seal"] = seal(content)
        if not path.exists() or read_json(path) != content:
            write_json(path, content)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a corpus; it is empty if there is none."""
    path = folder / MANIFEST
    if not path.exists():
        return Manifest(folder)
    content = read_json(path)
    try:
        recorded_seal = content.pop("seal")
        tasks = record_of(dict[str, TaskRecord], content["steps"])
        names = [name for record in tasks.values() for name in record.outputs]
        if recorded_seal != seal(content) or not all(map(is_plain_name, names)):
            raise ValueError("not what was written")
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise UserError(f"{path} is damaged: its content is not what was written. Delete it and run again.") from error
    return Manifest(folder, tasks, {name: value for name, value in content.items() if name != "steps"})


def run_tasks(manifest: Manifest, tasks: Iterable[Task], about: JsonObject, say: Callable[[str], None]) -> None:
    """Run the tasks of a corpus that are not done, and forget all others with their files.

    Args:
        manifest: The record; it is saved after each task.
        tasks: All tasks of the corpus, in order. Each may be made from the records of those before it.
        about: The new head of the manifest, which replaces the one of the last preparation when all tasks are done.
        say: Takes a line about a task that runs again, or that is done.
    """
    manifest.about = manifest.about or about
    names = set[str]()
    for task in tasks:
        names.add(task.name)
        _run_unless_done(manifest, task, say)
    for name in manifest.tasks.keys() - names:
        kept = {output for other in names for output in manifest.outputs(other)}
        _remove_outputs(manifest.folder, manifest.tasks.pop(name), kept)
    manifest.about = about
    manifest.save()


def _run_unless_done(manifest: Manifest, task: Task, say: Callable[[str], None]) -> None:
    record = manifest.tasks.get(task.name)
    if record:
        changed = different_inputs(task, record) or (["files"] if list(record.outputs) != list(task.outputs) else [])
        wrong = "" if changed else wrong_file(manifest.folder, record)
        if not changed and not wrong:
            return
        reason = f"{wrong} is missing or damaged" if wrong else f"its {' and '.join(changed)} changed"
        say(f"{task.name}: running again: {reason}")
    start = time.perf_counter()
    result = task.run()
    seconds = round(time.perf_counter() - start, 2)
    files = checksums([manifest.folder / output for output in task.outputs])
    if record:  # before the new record is saved, after which nobody would know these files
        _remove_outputs(manifest.folder, record, task.outputs)
    manifest.tasks[task.name] = TaskRecord(
        _as_json(task.inputs),
        dict(zip(task.outputs, files, strict=True)),
        result if isinstance(result, dict) else asdict(result),
        seconds,
    )
    manifest.save()
    say(f"{task.name}: done in {seconds:.1f} s")


def _remove_outputs(folder: Path, record: TaskRecord, kept: Collection[str]) -> None:
    for output in record.outputs:
        if output not in kept:
            remove(folder / output)


def _as_json(inputs: JsonObject) -> dict[str, Any]:
    """Return inputs as they are after writing and reading them."""
    found: dict[str, Any] = json.loads(json.dumps(inputs))
    return found


def different_inputs(task: Task, record: TaskRecord) -> list[str]:
    """Return the names of the inputs of a task that are not the recorded ones."""
    return [name for name, value in _as_json(task.inputs).items() if record.inputs.get(name) != value]


def wrong_file(folder: Path, record: TaskRecord) -> str:
    """Return a file of a task that is missing or damaged; an empty text if all are as it wrote them."""
    paths = [folder / name for name in record.outputs]
    if missing := [path.name for path in paths if not path.is_file()]:
        return missing[0]
    found = zip(record.outputs.items(), checksums(paths), strict=True)
    return next((name for (name, expected), sum_ in found if sum_ != expected), "")


def verify_task(folder: Path, name: str) -> bool:
    """Refuse files of a task that are not those that it wrote; return whether the task has a record."""
    record = read_manifest(folder).tasks.get(name)
    if record and (wrong := wrong_file(folder, record)):
        raise UserError(f"{folder / wrong} is not what was prepared: run `make data` with the same settings")
    return record is not None
