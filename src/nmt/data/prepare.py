"""Prepare a corpus, from its source to token ids: collect text, make the tokenizer, encode; each task runs once."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

from tqdm import tqdm

from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data import alignments
from nmt.data.corpora import CorpusSplit, check_all_is_read, corpus_splits, naming_corpus
from nmt.data.encode import encode_split
from nmt.data.engine import Engine
from nmt.data.filters import pipeline
from nmt.data.filters.overlap import count_overlap, learn, read_splits
from nmt.data.make_tokenizer import tokenizer_task
from nmt.data.manifest import (
    OVERLAP_TASK,
    Collected,
    Encoded,
    JsonObject,
    Manifest,
    Task,
    collect_task,
    encode_task,
    read_manifest,
    run_tasks,
)
from nmt.data.references import align_tasks, references_tasks
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint, Pair
from nmt.data.store import file_names
from nmt.errors import UserError
from nmt.storage.files import PARTIAL, exclusive_folder, remove, replacing

SECONDS_PER_LINE = 60
"""Time between two lines of progress, if it is not shown on a terminal."""


def prepare(config: Config, say: Callable[[str], None] = print) -> Manifest:
    """Bring the prepared corpus up to date with the settings; return its manifest. `say` takes lines of progress."""
    check_all_is_read(config.data)
    folder, taken = config.data_folder, "is being prepared by another process: waiting until it is done"
    # jobs that differ only in their training often begin together
    with exclusive_folder(folder, taken=taken, setting="paths.data", wait=say):
        for leftover in folder.glob(f"*{PARTIAL}"):
            remove(leftover)
        manifest = read_manifest(folder)
        settings = {"data": asdict(config.data), "tokenizer": asdict(config.tokenizer)}
        run_tasks(manifest, tasks_of(config, manifest), {"corpus": config.data.corpus, "settings": settings}, say)
    return manifest


def tasks_of(config: Config, manifest: Manifest, *, checking: bool = False) -> Iterator[Task]:
    """Yield all tasks of a corpus in order, with what they depend on, as far as the tasks before them are recorded.

    When `checking` what was prepared, text and other files that are not here have no fingerprints.
    """
    splits = corpus_splits(config.data)
    yield from text_tasks(config, manifest, splits, checking=checking)
    text: dict[str, object] = {each.name: manifest.outputs(collect_task(each.name)) for each in splits}
    yield Task(OVERLAP_TASK, {"text": text}, [], partial(_count_overlap, manifest, splits))
    yield tokenizer_task(config, manifest, checking=checking)
    for split in splits:
        inputs = {
            "text": manifest.outputs(collect_task(split.name)),
            "tokenizer": manifest.tokenizer().checksum,
            "max_pieces": _max_pieces(split),
        }
        outputs = file_names(split.name, split.data.languages, split.columns)
        yield Task(encode_task(split.name), inputs, outputs, partial(_encode, config, split, manifest))


def text_tasks(
    config: Config, manifest: Manifest, splits: Iterable[CorpusSplit], *, checking: bool = False
) -> Iterator[Task]:
    """Yield the tasks that write the text of some splits, the training text last."""
    found: dict[str, Fingerprint | None] = {}
    for split in splits:
        with naming_corpus(split.prefix):
            fingerprint = registry.fingerprint_if_here if checking else registry.fingerprint
            found[split.name] = fingerprint(split.data, split.split)
    for split in sorted(splits, key=lambda each: each.is_training_text):
        inputs = _collect_inputs(config, manifest, split, found[split.name])
        run = naming_corpus(split.prefix)(partial(_collect, config, split))
        yield Task(collect_task(split.name), inputs, split.texts, run)
        if (source := found[split.name]) and not checking:
            yield from references_tasks(manifest, split, source)
    for split in splits:
        yield from align_tasks(manifest.folder, split, found[split.name])


def _collect_inputs(config: Config, manifest: Manifest, split: CorpusSplit, source: Fingerprint | None) -> JsonObject:
    """Return all that the text of a split depends on, given the fingerprint of its source.

    The development and test text that some filters compare the training text with must be collected.
    """
    data, held_out, is_training_text = split.data, registry.held_out(split.data), split.is_training_text
    is_divided = held_out and split.split in ("train", *held_out)
    compared = _held_out_splits(config) if is_training_text and data.drop_overlap else []
    return {
        "source": source,
        "languages": list(split.data.languages),
        "tag": data.tag or None,
        "filters": pipeline.filter_settings(data) if is_training_text else {},
        "columns": data.columns or None,
        alignments.NAME: (is_training_text and bool(data.train_alignments)) or None,
        "hold_out": {"share": data.hold_out, "splits": held_out} if is_divided else None,
        "pos_tags": None if is_text(data.target_lang) else data.pos_tags,
        "held_out_text": {each.name: manifest.outputs(collect_task(each.name)) for each in compared} or None,
    }


def _held_out_splits(config: Config) -> list[CorpusSplit]:
    """Return the development and test text of all corpora."""
    return [each for each in corpus_splits(config.data) if not each.is_training_text]


def _collect(config: Config, split: CorpusSplit) -> Collected:
    """Read a split from its source and write its text, filtered, one sentence per line."""
    data, folder, counts = split.data, config.data_folder, Collected()
    filters = pipeline.filters_of(data, split.split, registry.held_out(data))
    learns = split.is_training_text and data.drop_overlap
    held_out = learn(read_splits(folder, _held_out_splits(config))) if learns else None
    with ExitStack() as stack:
        partials = [stack.enter_context(replacing(folder / name)) for name in split.texts]
        files = [stack.enter_context(partial.open("wb")) for partial in partials]
        progress = stack.enter_context(_counting_pairs(collect_task(split.name)))
        text = registry.pairs(data, split.split)
        for pairs in pipeline.apply(filters, data, text, counts, held_out, Engine.of(config)):
            for file, lines in zip(files, _columns(pairs, split), strict=True):
                file.write("".join(f"{line}\n" for line in lines).encode())
            progress.update(counts.read - progress.n)
        if not counts.kept:
            dropped = ", ".join(f"{name} {count}" for name, count in counts.dropped.items()) or "none"
            raise UserError(
                f"{split.name} has no pairs: of {counts.read} read, the filters dropped {dropped}. Loosen them, or "
                f"check data.{split.split} and data.hold_out"
            )
    return counts


def _columns(pairs: list[Pair], split: CorpusSplit) -> list[list[str]]:
    """Return the source lines, the target lines, and the lines of the alignments of pairs, if there are any."""
    start = f"{split.data.tag} " if split.data.tag else ""
    columns = [[f"{start}{pair[0]}" for pair in pairs], [pair[1] for pair in pairs]]
    if split.columns:
        columns.append([alignments.alignment_line(pair[-1], split.data) for pair in pairs])
    return columns


def _count_overlap(manifest: Manifest, splits: list[CorpusSplit]) -> JsonObject:
    """Count the development and test sentences that are also in the training text."""
    pairs = sum(manifest.collected(each.name).kept for each in splits if each.is_training_text)
    with _counting_pairs(OVERLAP_TASK, pairs) as progress:
        found = count_overlap(manifest.folder, splits, progress.update)
    return {split: asdict(overlap) for split, overlap in found.items()}


def _max_pieces(split: CorpusSplit) -> int:
    """Return how many word pieces the sentences of a split may have; 0 keeps all."""
    return split.data.max_pieces if split.is_training_text else 0


def _encode(config: Config, split: CorpusSplit, manifest: Manifest) -> Encoded:
    """Write the token ids of a split."""
    with _counting_pairs(encode_task(split.name), manifest.collected(split.name).kept) as progress:
        return encode_split(manifest.folder, split, _max_pieces(split), Engine.of(config), progress.update)


def _counting_pairs(name: str, total: int | None = None) -> Any:
    """Return a bar of progress for a `with` statement, whose `update` takes numbers of pairs that are done.

    Without a terminal, it is a line about every minute.
    """
    pause = 0.1 if sys.stderr.isatty() else SECONDS_PER_LINE
    return tqdm(desc=name, total=total, unit=" pairs", unit_scale=True, leave=False, mininterval=pause, delay=pause)
