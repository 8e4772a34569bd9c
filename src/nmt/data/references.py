"""What only `eval` reads of a split: its references after the first one, and its true word alignments."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from nmt.config.data import is_text
from nmt.config.folders import expanded
from nmt.data.alignments import NAME, aligned, given_file
from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import JsonObject, Manifest, Task, verify_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint
from nmt.errors import UserError
from nmt.storage.files import checksum, write_text
from nmt.text.alignments import GoldAlignment, read_alignments, write_gold
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


def align_tasks(folder: Path, split: CorpusSplit, fingerprint: Fingerprint | None, *, checking: bool) -> Iterator[Task]:
    """Yield the task that writes the true alignments of a split in Pharaoh format, if they are known.

    When `checking`, the file with them may be gone.
    """
    read, file, given = _reader(split), f"{split.name}.{NAME}", split.data.test_alignments

    def write() -> JsonObject:
        texts = (read_lines(folder / name) for name in split.texts[:2])
        alignments = (each.after(len(split.data.tag.split())) for each in read()) if read else ()
        found = [alignment for *_, alignment in aligned("test", zip(*texts, strict=True), alignments)]
        write_text(folder / file, "".join(f"{write_gold(each)}\n" for each in found))
        return {"links": sum(len(each.possible) for each in found), "sure": sum(len(each.sure) for each in found)}

    if read:
        is_gone = checking and not expanded(given).is_file()
        inputs: JsonObject = {
            "source": fingerprint,
            "languages": list(split.languages),
            "tag": split.data.tag or None,
            "sha256": checksum(given_file(split.data, "test")) if given and not is_gone else None,
        }
        outside = {"source": [], "sha256": [f"{split.prefix}test_alignments"]}
        yield Task(f"align {split.name}", inputs, [file], write, outside)


def _reader(split: CorpusSplit) -> Callable[[], Iterator[GoldAlignment]] | None:
    """Return what reads the true alignments of a split: from the given file or the source; None if neither has any."""
    if split.is_training_text or not is_text(split.data.target_lang):
        return None
    if split.split == "test" and split.data.test_alignments:
        return lambda: read_alignments(given_file(split.data, "test"))
    known = registry.source_of(split.data, split.split).alignments
    return partial(known, split.data, split.split) if known else None


def alignments_of(folder: Path, split: str) -> list[GoldAlignment]:
    """Return the true alignments of a split of prepared data; none if they are not known."""
    return list(read_alignments(folder / f"{split}.{NAME}")) if verify_task(folder, f"align {split}") else []
