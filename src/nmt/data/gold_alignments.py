"""The true word alignments of a split: a task of data preparation writes them, and `eval` reads them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data.alignments import NAME, aligned, given_checksum, given_file
from nmt.data.corpora import CorpusSplit
from nmt.data.layout import CorpusLayout, column_name
from nmt.data.manifest import PreparationTasks, read_manifest
from nmt.data.records import JsonObject
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint
from nmt.errors import UserError
from nmt.storage.files import checksum, write_text
from nmt.text.alignments import GoldAlignment, read_alignments, write_gold
from nmt.text.lines import read_lines


def align_task(split: str) -> str:
    """Return the name of the task of a split in the manifest."""
    return f"align {split}"


def write_gold_alignments(
    config: Config, tasks: PreparationTasks, split: CorpusSplit, fingerprint: Fingerprint
) -> list[str]:
    """Write the true alignments of a split in Pharaoh format; return the name of the task, if they are known."""
    read, file = _reader(split), column_name(split.name, NAME)
    if read is None:
        return []

    def write() -> JsonObject:
        tag_words = len(split.data.tag.split())
        texts = (read_lines(path) for path in CorpusLayout(config.data_folder).texts(split.name, split.languages))
        found = [
            alignment
            for *_, alignment in aligned("test", zip(*texts, strict=True), (each.after(tag_words) for each in read()))
        ]
        write_text(config.data_folder / file, "".join(f"{write_gold(each)}\n" for each in found))
        return {"links": sum(len(each.possible) for each in found), "sure": sum(len(each.sure) for each in found)}

    inputs: JsonObject = {
        "source": fingerprint,
        "languages": list(split.languages),
        "tag": split.data.tag or None,
        "sha256": given_checksum(split.data, "test") if split.data.test_alignments else None,
    }
    task = align_task(split.name)
    tasks.run(task, inputs, [file], write)
    return [task]


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
    record = read_manifest(folder).tasks.get(align_task(split))
    if record is None:
        return []
    path = folder / column_name(split, NAME)
    if not path.is_file() or checksum(path) != record.outputs.get(path.name):
        raise UserError(f"{path} is not what was prepared: run `make data` with the same settings")
    return list(read_alignments(path))
