"""Steps that are done once: skipped while their inputs stay the same and their outputs whole."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import PARTIAL, checksums, is_plain_name, read_json, remove, seal, write_json
from nmt.storage.lock import exclusive_folder

MANIFEST = "manifest.json"


class PreparationTasks:
    """The steps of a folder and their record, its manifest."""

    def __init__(self, folder: Path, about: dict[str, Any], say: Callable[[str], None]) -> None:
        """Go on with the steps recorded in a folder; `about` opens the manifest."""
        self._folder = folder
        self._about = about
        self._say = say
        self._records = read_records(folder)

    def run(
        self, name: str, inputs: dict[str, Any], outputs: Sequence[str], work: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Do a step, unless its record says that it is done; give what `work` returned then or now."""
        inputs = json.loads(json.dumps(inputs))
        before = self._records.get(name)
        reason = self._reason(before, inputs, outputs)
        if before and not reason:
            self._say(f"{name}: unchanged")
            return dict(before["result"])
        self._say(f"{name}: {reason}")
        start = time.perf_counter()
        result = work()
        seconds = round(time.perf_counter() - start, 2)
        files = dict(zip(outputs, checksums([self._folder / output for output in outputs]), strict=True))
        self._records[name] = {"inputs": inputs, "outputs": files, "result": result, "seconds": seconds}
        self._save()
        self._remove(before, outputs)
        self._say(f"{name}: done in {seconds:.1f} s")
        return result

    def finish(self, names: Sequence[str]) -> dict[str, Any]:
        """Forget steps that are no longer wanted, with their files; give the records of the others."""
        for name in set(self._records) - set(names):
            kept = {output for each in names for output in self._records[each]["outputs"]}
            self._remove(self._records.pop(name), kept)
        self._save()
        return self._records

    def outputs(self, name: str) -> dict[str, str]:
        """Checksums of a step's files."""
        return dict(self._records[name]["outputs"])

    def result(self, name: str) -> dict[str, Any]:
        """What a step returned when it was done."""
        return dict(self._records[name]["result"])

    def _reason(self, record: dict[str, Any] | None, inputs: dict[str, Any], outputs: Sequence[str]) -> str:
        """Say why a step must be done; empty where it need not."""
        if record is None:
            return "started"
        changed = [key for key in sorted({*inputs, *record["inputs"]}) if inputs.get(key) != record["inputs"].get(key)]
        if changed or list(record["outputs"]) != list(outputs):
            return f"redone, for its {' and '.join(changed) or 'files'} changed"
        missing = [output for output in outputs if not (self._folder / output).is_file()]
        if missing:
            return f"redone, for {missing[0]} is missing"
        found = checksums([self._folder / output for output in outputs])
        damaged = [output for output, sum_ in zip(outputs, found, strict=True) if sum_ != record["outputs"][output]]
        return f"redone, for {damaged[0]} is damaged" if damaged else ""

    def _save(self) -> None:
        path = self._folder / MANIFEST
        content = {**self._about, "steps": self._records}
        content["seal"] = seal(content)
        if not path.exists() or read_json(path) != content:
            write_json(path, content)

    def _remove(self, record: dict[str, Any] | None, kept: Sequence[str] | set[str]) -> None:
        """Remove files that only an earlier form of a step has written."""
        for output in (record or {"outputs": {}})["outputs"]:
            if output not in kept:
                remove(self._folder / output)


def read_records(folder: Path) -> dict[str, Any]:
    """Records of the steps done in a folder, by name; none where there is no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("steps"), dict):
        raise UserError(f"{path} is not a manifest of prepared data. Delete it and run again.")
    sealed = content.pop("seal", None)  # manifests of earlier versions have none
    if sealed not in (None, seal(content)) or not all(map(_is_record, content["steps"].values())):
        raise UserError(f"{path} is not what was written: it is damaged. Delete it and run again.")
    return dict(content["steps"])


def _is_record(record: Any) -> bool:
    """Whether this can be the record of a step, whose outputs lie in the manifest's own folder."""
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(key), dict) for key in ("inputs", "outputs", "result"))
        and all(map(is_plain_name, record["outputs"]))
    )


@contextmanager
def exclusive_corpus(folder: Path) -> Iterator[None]:
    """Work alone in a folder, which is made where needed and cleared of what an interrupted run left."""
    with exclusive_folder(
        folder, taken="is being prepared by another process: wait until it is done.", setting="paths.data"
    ):
        for leftover in folder.glob(f"*{PARTIAL}"):
            remove(leftover)
        yield
