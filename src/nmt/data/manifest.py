"""Run each task of preparation once: skip it while its inputs are unchanged and its outputs whole."""

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.data.layout import CorpusLayout
from nmt.data.records import JsonObject, Manifest, TaskRecord
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
        self._folder = folder
        self._say = say
        self.manifest = read_manifest(folder)
        self._new_about = about
        # until all tasks are done, the manifest keeps the settings of the preparation that was finished last
        self._about = self.manifest.about or about

    def run(
        self,
        name: str,
        inputs: JsonObject,
        outputs: Sequence[str],
        task: Callable[[], JsonObject],
        minor: Collection[str] = (),
    ) -> None:
        """Run a task unless its record says that it is done.

        Args:
            name: The task's name in the manifest.
            inputs: Everything on which the outputs depend, as JSON.
            outputs: The names of the files that the task writes.
            task: Writes the outputs and returns the result for the manifest.
            minor: Inputs that may change without a reason to run the task again.
        """
        inputs = json.loads(json.dumps(inputs))
        earlier = self.manifest.tasks.get(name)
        changed = _changed(earlier, inputs)
        reason = self._reason(earlier, [key for key in changed if key not in minor], outputs)
        if not reason:
            if changed:
                self._say(f"{name}: kept, although its {' and '.join(changed)} changed")
            return
        if earlier:
            self._say(f"{name}: {reason}")
        start = time.perf_counter()
        result = task()
        seconds = round(time.perf_counter() - start, 2)
        files = dict(zip(outputs, checksums([self._folder / output for output in outputs]), strict=True))
        if earlier:  # before the new record is saved, after which nobody would know these files
            self._remove_outputs(earlier, kept=outputs)
        self.manifest.tasks[name] = TaskRecord(inputs, files, result, seconds)
        self._save()
        self._say(f"{name}: done in {seconds:.1f} s")

    def finish(self, names: Sequence[str]) -> Manifest:
        """Remove the records and files of all other tasks; return the manifest."""
        for name in set(self.manifest.tasks) - set(names):
            needed = {output for each in names for output in self.manifest.tasks[each].outputs}
            self._remove_outputs(self.manifest.tasks.pop(name), needed)
        self._about = self._new_about
        self._save()
        return self.manifest

    def outputs(self, name: str) -> dict[str, str]:
        """Return the checksums of the files of a task, by name."""
        return dict(self.manifest.tasks[name].outputs)

    def _reason(self, record: TaskRecord | None, changed: Sequence[str], outputs: Sequence[str]) -> str:
        """Return why a task must run; empty if it need not."""
        if record is None:
            return "new"
        if changed or list(record.outputs) != list(outputs):
            return f"running again: its {' and '.join(changed) or 'files'} changed"
        missing = [output for output in outputs if not (self._folder / output).is_file()]
        if missing:
            return f"running again: {missing[0]} is missing"
        found = checksums([self._folder / output for output in outputs])
        damaged = [output for output, sum_ in zip(outputs, found, strict=True) if sum_ != record.outputs[output]]
        return f"running again: {damaged[0]} is damaged" if damaged else ""

    def _save(self) -> None:
        path = CorpusLayout(self._folder).manifest
        content = {**self._about, "steps": {name: asdict(record) for name, record in self.manifest.tasks.items()}}
        content["seal"] = seal(content)
        if not path.exists() or read_json(path) != content:
            write_json(path, content)

    def _remove_outputs(self, record: TaskRecord, kept: Sequence[str] | set[str]) -> None:
        """Remove the files of an earlier record that no task writes any more."""
        for output in record.outputs:
            if output not in kept:
                remove(self._folder / output)


def _changed(record: TaskRecord | None, inputs: JsonObject) -> list[str]:
    """Return the inputs that differ from the recorded ones; None equals a missing one."""
    before = record.inputs if record else inputs
    return [key for key in sorted({*inputs, *before}) if inputs.get(key) != before.get(key)]


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a corpus; it is empty if there is none."""
    path = CorpusLayout(folder).manifest
    if not path.exists():
        return Manifest()
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("steps"), dict):
        raise UserError(f"{path} is not a manifest of prepared data. Delete it and run again.")
    recorded_seal = content.pop("seal", None)
    records = content.pop("steps")
    if recorded_seal != seal({**content, "steps": records}) or not all(map(_is_record, records.values())):
        raise UserError(f"{path} is damaged: its content is not what was written. Delete it and run again.")
    return Manifest({name: _read_record(record) for name, record in records.items()}, content)


def _is_record(record: Any) -> bool:
    """Return whether a JSON value can be the record of a task whose outputs are in the manifest's folder."""
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(key), dict) for key in ("inputs", "outputs", "result"))
        and all(map(is_plain_name, record["outputs"]))
    )


def _read_record(record: dict[str, Any]) -> TaskRecord:
    return TaskRecord(record["inputs"], record["outputs"], record["result"], record.get("seconds", 0.0))


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
