"""The references of a test set after the first one: <split>.references.jsonl, one list per sentence."""

import json
from collections.abc import Iterator
from pathlib import Path

from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import JsonObject, Manifest, Task, verify_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint
from nmt.errors import UserError
from nmt.storage.files import write_text
from nmt.text.lines import read_lines


def _names(split: str) -> tuple[str, str]:
    """Return the names of the task and of its file."""
    return f"references {split}", f"{split}.references.jsonl"


def references_tasks(manifest: Manifest, split: CorpusSplit, fingerprint: Fingerprint) -> Iterator[Task]:
    """Yield the task that writes the further references of a split, if there are any."""
    found = registry.further_references(split.data, split.split)
    task, file = _names(split.name)

    def write() -> JsonObject:
        sentences = manifest.collected(split.name).kept
        for column in found:
            if len(column) != sentences:
                raise UserError(
                    f"data.{split.split} has {sentences:,} sentences, but a reference has {len(column):,} lines"
                )
        lines = (json.dumps(row, ensure_ascii=False) for row in zip(*found, strict=True))
        write_text(manifest.folder / file, "".join(f"{line}\n" for line in lines))
        return {"references": 1 + len(found)}

    if found:
        yield Task(task, {"source": fingerprint}, [file], write)


def read_further_references(folder: Path, split: str) -> list[list[str]]:
    """Return the sentences of each further reference of a split of prepared data."""
    task, file = _names(split)
    if not verify_task(folder, task):
        return []
    return [list(column) for column in zip(*map(json.loads, read_lines(folder / file)), strict=True)]
