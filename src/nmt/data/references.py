"""What only `eval` reads of a split: its references after the first one, and its true word alignments."""

import json
from collections.abc import Iterator
from pathlib import Path

from nmt.data.alignments import NAME, aligned, alignment_line
from nmt.data.corpora import CorpusSplit, untagged
from nmt.data.manifest import JsonObject, Manifest, Task, verify_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint
from nmt.errors import UserError
from nmt.storage.files import write_text
from nmt.text.alignments import GoldAlignment, read_alignments
from nmt.text.lines import read_lines


def references_tasks(manifest: Manifest, split: CorpusSplit, fingerprint: Fingerprint) -> Iterator[Task]:
    """Yield the task that writes the further references of a split, one list per sentence, if there are any."""
    found, file = registry.further_references(split.data, split.split), f"{split.name}.references.jsonl"

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
        yield Task(f"references {split.name}", {"source": fingerprint}, [file], write)


def read_further_references(folder: Path, split: str) -> list[list[str]]:
    """Return the sentences of each further reference of a split of prepared data."""
    if not verify_task(folder, f"references {split}"):
        return []
    rows = map(json.loads, read_lines(folder / f"{split}.references.jsonl"))
    return [list(column) for column in zip(*rows, strict=True)]


def align_tasks(folder: Path, split: CorpusSplit, fingerprint: Fingerprint | None) -> Iterator[Task]:
    """Yield the task that writes the true alignments of a development or test split, if they are known."""
    read, file = registry.alignments_of(split.data, split.split), f"{split.name}.{NAME}"

    def write() -> JsonObject:
        sources, targets = (read_lines(folder / name) for name in split.texts[:2])
        pairs = zip((untagged(line, split.data.tag) for line in sources), targets, strict=True)
        found = [pair[-1] for pair in aligned("test", pairs, read() if read else ())]
        write_text(folder / file, "".join(f"{alignment_line(each, split.data)}\n" for each in found))
        return {"links": sum(len(each.possible) for each in found), "sure": sum(len(each.sure) for each in found)}

    if read and not split.is_training_text:
        inputs = {"source": fingerprint, "languages": list(split.data.languages), "tag": split.data.tag or None}
        yield Task(f"align {split.name}", inputs, [file], write)


def alignments_of(folder: Path, split: str) -> list[GoldAlignment]:
    """Return the true alignments of a split of prepared data; none if they are not known."""
    return list(read_alignments(folder / f"{split}.{NAME}")) if verify_task(folder, f"align {split}") else []
