"""The references of a test set after the first one: <split>.references.jsonl, one list per sentence."""

import json
from pathlib import Path

from nmt.config.tree import Config
from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import PreparationTasks, read_manifest
from nmt.data.records import JsonObject, references_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint
from nmt.errors import UserError
from nmt.storage.files import checksum, write_text
from nmt.text.lines import read_lines


def references_name(split: str) -> str:
    """Return the name of the file with the further references of a split."""
    return f"{split}.references.jsonl"


def write_further_references(
    config: Config, tasks: PreparationTasks, split: CorpusSplit, fingerprint: Fingerprint
) -> list[str]:
    """Write the further references of a split; return the name of the task, if there are any."""
    found = registry.further_references(split.data, split.split)
    if not found:
        return []
    task, file = references_task(split.name), references_name(split.name)

    def write() -> JsonObject:
        sentences = tasks.manifest.collected(split.name).kept
        for column in found:
            if len(column) != sentences:
                raise UserError(
                    f"data.{split.split} has {sentences:,} sentences, but a reference has {len(column):,} lines"
                )
        lines = (json.dumps(row, ensure_ascii=False) for row in zip(*found, strict=True))
        write_text(config.data_folder / file, "".join(f"{line}\n" for line in lines))
        return {"references": 1 + len(found)}

    tasks.run(task, {"source": fingerprint}, [file], write)
    return [task]


def read_further_references(folder: Path, split: str) -> list[list[str]]:
    """Return the sentences of each further reference of a split of prepared data."""
    record = read_manifest(folder).tasks.get(references_task(split))
    if record is None:
        return []
    path = folder / references_name(split)
    if not path.is_file() or checksum(path) != record.outputs.get(path.name):
        raise UserError(f"{path} is not what was prepared: run `make data` with the same settings")
    return [list(column) for column in zip(*map(json.loads, read_lines(path)), strict=True)]
