"""Prepare a corpus, from its source to token ids: collect text, train the tokenizer, encode; each task runs once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import chain

from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data import encode, store
from nmt.data.alignments import alignment_line
from nmt.data.corpora import CorpusSplit, corpus_splits, naming_corpus
from nmt.data.engine import Engine, open_engine
from nmt.data.filters import pipeline as filters
from nmt.data.filters.shared import filter_chain
from nmt.data.further_references import write_further_references
from nmt.data.gold_alignments import write_gold_alignments
from nmt.data.held_out_text import held_out_checksums, informed
from nmt.data.layout import CorpusLayout, column_name, text_names
from nmt.data.manifest import PreparationTasks, exclusive_corpus
from nmt.data.overlap_task import record_overlap
from nmt.data.prepared import collect_settings, longest_sentence
from nmt.data.progress import PairProgress
from nmt.data.records import Collected, JsonObject, Manifest, collect_task, encode_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint, Pair
from nmt.data.tags import TAGS_TASK, check_tags, tags_of
from nmt.data.tokenizer_task import make_tokenizer
from nmt.data.unread_settings import check_all_is_read
from nmt.errors import UserError
from nmt.storage.files import replacing

Say = Callable[[str], None]
"""Takes a line of progress."""


def prepare(config: Config, say: Say = print, given_engine: Engine | None = None) -> Manifest:
    """Bring the prepared corpus up to date with the settings; return its manifest.

    Args:
        config: All settings.
        say: Takes a line of progress.
        given_engine: Does the work and is closed at the end; by default the one that the settings name.
    """
    check_all_is_read(config.data)
    folder = config.data_folder
    with exclusive_corpus(folder, say), closing(given_engine or open_engine(config)) as engine:
        tasks = PreparationTasks(folder, _about(config), say)
        splits = corpus_splits(config.data)
        found = [(each, _fingerprint(each)) for each in splits]
        held_out_first = sorted(found, key=lambda each: each[0].is_training_text)
        names = list(
            chain.from_iterable(_collect_with_references(config, tasks, engine, *each) for each in held_out_first)
        )
        names += chain.from_iterable(write_gold_alignments(config, tasks, *each) for each in found)
        names += [record_overlap(config, tasks, splits), make_tokenizer(config, tasks)]
        names += [_encode(config, tasks, engine, each) for each in splits]
        if tags_of(splits):
            names.append(_check_tags(config, tasks, splits))
        return tasks.finish(names)


def _fingerprint(split: CorpusSplit) -> Fingerprint:
    with naming_corpus(split.prefix):
        return registry.fingerprint(split.data, split.split)


def _collect_with_references(
    config: Config, tasks: PreparationTasks, engine: Engine, split: CorpusSplit, fingerprint: Fingerprint
) -> Iterator[str]:
    """Write the text of a split and what it has besides its pairs; yield the names of the tasks."""
    with naming_corpus(split.prefix):
        yield _collect(config, tasks, engine, split, fingerprint)
        yield from write_further_references(config, tasks, split, fingerprint)


def _collect(
    config: Config, tasks: PreparationTasks, engine: Engine, split: CorpusSplit, fingerprint: Fingerprint
) -> str:
    """Read a split from its source and write its text, filtered, one sentence per line."""
    name = collect_task(split.name)
    tasks.run(
        name,
        {
            "source": fingerprint,
            **collect_settings(split.data, split.split),
            **held_out_checksums(config, tasks, split),
        },
        [*text_names(split.name, split.languages), *(column_name(split.name, each) for each in split.columns)],
        lambda: asdict(_write_text(config, engine, split)),
    )
    return name


def _filters(data: DataConfig, split: str) -> list[filters.Filter]:
    """Return the filters of a split; development and test text that the user names is kept as it is."""
    if split == "train":
        return filters.training_filters(data)
    return filters.sentence_filters() if split in registry.held_out(data) else []


def _write_text(config: Config, engine: Engine, corpus_split: CorpusSplit) -> Collected:
    data, split = corpus_split.data, corpus_split.split
    kept = 0
    with ExitStack() as stack:
        found = informed(_filters(data, split), config, data)
        chosen = stack.enter_context(closing(filter_chain(found, data, engine)))
        paths = list(CorpusLayout(config.data_folder).texts(corpus_split.name, corpus_split.languages))
        paths += [config.data_folder / column_name(corpus_split.name, each) for each in corpus_split.columns]
        partials = [stack.enter_context(replacing(path)) for path in paths]
        files = [stack.enter_context(partial.open("wb")) for partial in partials]
        progress = stack.enter_context(PairProgress(collect_task(corpus_split.name)))
        reading = _Reading(filters.chunks(registry.pairs(data, split)), progress.advance)
        for pairs in chosen.apply_all(reading):
            if not chosen.dropped:
                _refuse_control_characters(pairs, kept, corpus_split.name)
            for file, lines in zip(files, _columns(pairs, corpus_split), strict=True):
                file.write("".join(f"{line}\n" for line in lines).encode())
            kept += len(pairs)
        if not kept:
            raise UserError(_no_pairs_message(corpus_split, reading.pairs, chosen.dropped))
    return Collected(reading.pairs, kept, chosen.dropped, reading.line_breaks)


class _Reading:
    """Chunks of pairs on their way to the filters, with each sentence on one line, and counts of them."""

    def __init__(self, chunks: Iterator[list[Pair]], advance: Callable[[int], None]) -> None:
        self._chunks, self._advance = chunks, advance
        self.pairs = self.line_breaks = 0

    def __iter__(self) -> Iterator[list[Pair]]:
        for cells in self._chunks:
            chunk, broken = filters.join_lines(cells)
            self.pairs += len(chunk)
            self.line_breaks += broken
            self._advance(len(chunk))
            yield chunk


def _columns(pairs: list[Pair], split: CorpusSplit) -> list[list[str]]:
    """Return the source lines, the target lines, and the lines of the alignments of pairs, if there are any."""
    start = f"{split.data.tag} " if split.data.tag else ""
    columns = [[f"{start}{pair[0]}" for pair in pairs], [pair[1] for pair in pairs]]
    if split.columns:
        columns.append([alignment_line(pair[-1], split.data) for pair in pairs])
    return columns


def _refuse_control_characters(pairs: list[Pair], pairs_before: int, split: str) -> None:
    for number, pair in enumerate(pairs, pairs_before + 1):
        if any(map(filters.breaks_lines, pair[:2])):
            raise UserError(f"pair {number} of {split} holds a NUL inside a sentence: correct it first.")


def _no_pairs_message(split: CorpusSplit, read: int, dropped: Mapping[str, int]) -> str:
    if not read and split.split in registry.held_out(split.data):
        return f"data.hold_out={split.data.hold_out} takes no pair of the training text for {split.name}: raise it."
    if not read:
        return f"{split.name} is empty: it has no pairs. Check data.{split.split}."
    counts = ", ".join(f"{name} {count}" for name, count in dropped.items())
    return f"the filters leave none of the {read} pairs of {split.name} (dropped: {counts}): loosen them."


def _check_tags(config: Config, tasks: PreparationTasks, splits: list[CorpusSplit]) -> str:
    """Make sure that the tags occur only before the sentences of their corpora."""
    encoded = {each.name: tasks.outputs(encode_task(each.name)) for each in splits}
    tasks.run(
        TAGS_TASK, {"tags": tags_of(splits), "tokens": encoded}, [], lambda: check_tags(config.data_folder, splits)
    )
    return TAGS_TASK


def _encode(config: Config, tasks: PreparationTasks, engine: Engine, split: CorpusSplit) -> str:
    name = encode_task(split.name)
    max_pieces = longest_sentence(split)

    def encode_split() -> JsonObject:
        with PairProgress(name, tasks.manifest.collected(split.name).kept) as progress:
            record = encode.encode_split(
                config.data_folder,
                split.name,
                split.languages,
                max_pieces=max_pieces,
                columns=split.columns,
                engine=engine,
                advance=progress.advance,
            )
        return asdict(record)

    tasks.run(
        name,
        {
            "text": tasks.outputs(collect_task(split.name)),
            "tokenizer": tasks.manifest.tokenizer().checksum,
            "max_pieces": max_pieces,
        },
        store.file_names(split.name, split.languages, split.columns),
        encode_split,
    )
    return name


def _about(config: Config) -> JsonObject:
    """Return the head of the manifest: the source of the text and the settings of its preparation."""
    data = asdict(config.data)
    recorded = {setting: data[setting] for setting in registry.recorded_settings(config.data)}
    return {
        "corpus": config.data.corpus,
        "source": {"kind": config.data.source, **recorded},
        "languages": [config.data.source_lang, config.data.target_lang],
        "settings": {"data": data, "tokenizer": asdict(config.tokenizer)},
    }
