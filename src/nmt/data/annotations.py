"""What a test set has besides its pairs: further references, and labels of its sentences such as their origin."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nmt.data.manifest import read_manifest
from nmt.data.records import annotate_task
from nmt.errors import UserError
from nmt.storage.files import checksum, write_text
from nmt.text.lines import read_lines


@dataclass(frozen=True, slots=True)
class Annotations:
    """Further references and labels, each with one entry per sentence."""

    references: list[list[str]] = field(default_factory=list)
    """The sentences of each reference after the first one."""
    labels: Mapping[str, list[str]] = field(default_factory=dict)
    """The values of each label, such as origin or domain."""

    def __bool__(self) -> bool:
        """Whether there is anything besides the pairs."""
        return bool(self.references or self.labels)


def annotations_name(split: str) -> str:
    """Return the name of the file with the annotations of a split."""
    return f"{split}.annotations.jsonl"


def write_annotations(path: Path, annotations: Annotations, sentences: int, name: str) -> None:
    """Write one JSON object per sentence; refuse columns of another length than the split `name`."""
    columns = [*annotations.references, *annotations.labels.values()]
    for column in columns:
        if len(column) != sentences:
            raise UserError(f"{name} has {sentences:,} sentences, but a reference or label has {len(column):,} lines")
    count = len(annotations.references)
    rows = [
        {"references": list(row[:count]), **dict(zip(annotations.labels, row[count:], strict=True))}
        for row in zip(*columns, strict=True)
    ]
    write_text(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def read_annotations(path: Path) -> Annotations:
    """Read the annotations that `write_annotations` wrote."""
    try:
        rows = [json.loads(line) for line in read_lines(path)]
        labels = [name for name in rows[0] if name != "references"]
        references = [list(column) for column in zip(*(row["references"] for row in rows), strict=True)]
        return Annotations(references, {name: [str(row[name]) for row in rows] for name in labels})
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged: run `make data` with the same settings") from error


def annotations_of(folder: Path, split: str) -> Annotations:
    """Return the annotations of a split of prepared data; a split without such a task has none."""
    record = read_manifest(folder).tasks.get(annotate_task(split))
    if record is None:
        return Annotations()
    path = folder / annotations_name(split)
    if not path.is_file() or checksum(path) != record.outputs.get(path.name):
        raise UserError(f"{path} is not what was prepared: run `make data` with the same settings")
    return read_annotations(path)
