"""Run each task of preparation once: skip it while its inputs are unchanged and its outputs whole."""

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.data.layout import CorpusLayout
from nmt.data.records import JsonObject, Manifest, TaskRecord, read_as
from nmt.errors import UserError
from nmt.storage.files import PARTIAL, checksums, is_plain_name, read_json, remove, seal, write_json
from nmt.storage.lock import exclusive_folder


class PreparationTasks:
    """The tasks of a corpus and their record, the manifest."""

    def __init__(self, folder: Path, about: JsonObject, say: Callable[[str], None]) -> None:
        """Continue from the tasks recorded in a folder.

        Args:
            folder: The folder of the corpus.
            about: Entries at the beginning of the manifest.
            say: Takes a line about a task that runs again, or that is done.
        """
        self._folder, self._say, self._new_about = folder, say, about
        self.manifest = read_manifest(folder)
        # until all tasks are done, the manifest keeps the settings of the preparation that was finished last
        self._about = self.manifest.about or about
        self._names: list[str] = []

    def run(
        self,
        name: str,
        inputs: JsonObject,
        outputs: Sequence[str],
        task: Callable[[], Any],
        minor: Collection[str] = (),
    ) -> None:
        """Run a task unless its record says that it is done.

        Args:
            name: The task's name in the manifest.
            inputs: Everything on which the outputs depend, as JSON; None equals a missing input.
            outputs: The names of the files that the task writes.
            task: Writes the outputs and returns the result for the manifest, a dataclass or JSON.
            minor: Inputs that may change without a reason to run the task again.
        """
        self._names.append(name)
        inputs = json.loads(json.dumps(inputs))
        earlier = self.manifest.tasks.get(name)
        before = earlier.inputs if earlier else inputs
        changed = [key for key in sorted({*inputs, *before}) if inputs.get(key) != before.get(key)]
        reason = self._reason(earlier, [key for key in changed if key not in minor], outputs)
        if not reason:
            if changed:
                self._say(f"{name}: kept, although its {' and '.join(changed)} changed")
            return
        if earlier:
            self._say(f"{name}: {reason}")
        start = time.perf_counter()
        result = task()
        result = result if isinstance(result, dict) else asdict(result)
        seconds = round(time.perf_counter() - start, 2)
        files = dict(zip(outputs, checksums([self._folder / output for output in outputs]), strict=True))
        if earlier:  # before the new record is saved, after which nobody would know these files
            self._remove_outputs(earlier, kept=outputs)
        self.manifest.tasks[name] = TaskRecord(dict(inputs), files, result, seconds)
        self._save()
        self._say(f"{name}: done in {seconds:.1f} s")

    def finish(self) -> Manifest:
        """Remove the records and files of all tasks that were not asked for; return the manifest."""
        needed = {output for name in self._names for output in self.manifest.tasks[name].outputs}
        for name in set(self.manifest.tasks) - set(self._names):
            self._remove_outputs(self.manifest.tasks.pop(name), needed)
        self._about = self._new_about
        self._save()
        return self.manifest

    def _reason(self, record: TaskRecord | None, changed: Sequence[str], outputs: Sequence[str]) -> str:
        """Return why a task must run; empty if it need not."""
        if record is None:
            return "new"
        if changed or list(record.outputs) != list(outputs):
            return f"running again: its {' and '.join(changed) or 'files'} changed"
        wrong = wrong_file(self._folder, record)
        return f"running again: {wrong[0]} is {wrong[1]}" if wrong else ""

    def _save(self) -> None:
        path = CorpusLayout(self._folder).manifest
        content = {**self._about, "steps": {name: asdict(record) for name, record in self.manifest.tasks.items()}}
        content["seal"] = seal(content)
        if not path.exists() or read_json(path) != content:
            write_json(path, content)

    def _remove_outputs(self, record: TaskRecord, kept: Collection[str]) -> None:
        """Remove the files of an earlier record that no task writes any more."""
        for output in record.outputs:
            if output not in kept:
                remove(self._folder / output)


def wrong_file(folder: Path, record: TaskRecord) -> tuple[str, str] | None:
    """Return a file of a task that is missing or damaged, and which of the two; None if all are as it wrote them."""
    missing = next((name for name in record.outputs if not (folder / name).is_file()), None)
    if missing:
        return missing, "missing"
    found = zip(record.outputs, checksums([folder / name for name in record.outputs]), strict=True)
    return next(((name, "damaged") for name, sum_ in found if sum_ != record.outputs[name]), None)


def verify_task(folder: Path, name: str) -> bool:
    """Refuse files of a task that are not those that it wrote; return whether the task has a record."""
    record = read_manifest(folder).tasks.get(name)
    if record and (wrong := wrong_file(folder, record)):
        raise UserError(f"{folder / wrong[0]} is not what was prepared: run `make data` with the same settings")
    return record is not None


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a corpus; it is empty if there is none."""
    path = CorpusLayout(folder).manifest
    if not path.exists():
        return Manifest()
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("steps"), dict):
        raise UserError(f"{path} is not a manifest of prepared data. Delete it and run again.")
    recorded_seal = content.pop("seal", None)
    try:
        tasks = read_as(dict[str, TaskRecord], content["steps"])
        names = [name for record in tasks.values() for name in record.outputs]
        if recorded_seal != seal(content) or not all(map(is_plain_name, names)):
            raise TypeError("not what was written")
    except TypeError as error:
        raise UserError(f"{path} is damaged: its content is not what was written. Delete it and run again.") from error
    return Manifest(tasks, {name: value for name, value in content.items() if name != "steps"})


@contextmanager
def exclusive_corpus(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Lock a corpus folder, create it if needed, and remove files of an interrupted run.

    If another process prepares the same corpus, wait for it: jobs that differ only in their training often begin
    together.
    """
    taken = "is being prepared by another process: waiting until it is done"
    with exclusive_folder(folder, taken=taken, setting="paths.data", wait=say):
        for leftover in folder.glob(f"*{PARTIAL}"):
            remove(leftover)
        yield
