"""Prepare a corpus, from its source to token ids: collect text, train the tokenizer, encode; each task runs once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial

from nmt.config.tree import Config
from nmt.data.alignments import alignment_line
from nmt.data.corpora import CorpusSplit, check_all_is_read, corpus_splits, naming_corpus
from nmt.data.encode import encode_split
from nmt.data.engine import Engine, open_engine
from nmt.data.filters import pipeline
from nmt.data.filters.overlap import count_overlap, learn, read_splits
from nmt.data.further_references import write_further_references
from nmt.data.gold_alignments import write_gold_alignments
from nmt.data.layout import CorpusLayout, column_name, text_names
from nmt.data.make_tokenizer import make_tokenizer
from nmt.data.manifest import PreparationTasks, exclusive_corpus
from nmt.data.prepared import encode_inputs, held_out_splits, inputs_of
from nmt.data.progress import counting_pairs
from nmt.data.records import OVERLAP_TASK, Collected, Encoded, JsonObject, Manifest, collect_task, encode_task
from nmt.data.sources import registry
from nmt.data.sources.source import Pair
from nmt.data.store import file_names
from nmt.data.tags import TAGS_TASK, check_tags, tags_of
from nmt.errors import UserError
from nmt.storage.files import replacing


def prepare(config: Config, say: Callable[[str], None] = print, given_engine: Engine | None = None) -> Manifest:
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
        splits, sources = corpus_splits(config.data), {}
        for split in splits:
            with naming_corpus(split.prefix):
                sources[split.name] = registry.fingerprint(split.data, split.split)
        for split in sorted(splits, key=lambda each: each.is_training_text):
            with naming_corpus(split.prefix):
                tasks.run(
                    collect_task(split.name),
                    inputs_of(config, tasks.manifest, split, sources[split.name]),
                    [*text_names(split.name, split.languages), *(column_name(split.name, c) for c in split.columns)],
                    partial(_collect, config, engine, split),
                )
                write_further_references(config, tasks, split, sources[split.name])
        for split in splits:
            write_gold_alignments(config, tasks, split, sources[split.name])
        _count_overlap(config, tasks, splits)
        make_tokenizer(config, tasks)
        for split in splits:
            tasks.run(
                encode_task(split.name),
                encode_inputs(tasks.manifest, split),
                file_names(split.name, split.languages, split.columns),
                partial(_encode, config, engine, split, tasks.manifest),
            )
        if tags := tags_of(splits):
            tokens = {each.name: tasks.manifest.outputs(encode_task(each.name)) for each in splits}
            tasks.run(TAGS_TASK, {"tags": tags, "tokens": tokens}, [], lambda: check_tags(folder, splits))
        return tasks.finish()


def _collect(config: Config, engine: Engine, split: CorpusSplit) -> Collected:
    """Read a split from its source and write its text, filtered, one sentence per line."""
    data, layout = split.data, CorpusLayout(config.data_folder)
    filters = pipeline.filters_of(data, split.split, registry.held_out(data))
    learns = split.is_training_text and data.drop_overlap
    held_out = learn(read_splits(layout.folder, held_out_splits(config.data))) if learns else None
    read = kept = line_breaks = 0
    dropped: dict[str, int] = {}
    with ExitStack() as stack:
        paths = list(layout.texts(split.name, split.languages))
        paths += [layout.folder / column_name(split.name, each) for each in split.columns]
        partials = [stack.enter_context(replacing(path)) for path in paths]
        files = [stack.enter_context(partial.open("wb")) for partial in partials]
        progress = stack.enter_context(counting_pairs(collect_task(split.name)))

        def counted() -> Iterator[list[Pair]]:
            nonlocal read, line_breaks
            for chunk, broken in pipeline.read_chunks(registry.pairs(data, split.split)):
                read += len(chunk)
                line_breaks += broken
                progress.update(len(chunk))
                yield chunk

        for pairs in pipeline.apply(filters, data, counted(), dropped, held_out, engine):
            if not filters:
                _refuse_control_characters(pairs, kept, split.name)
            for file, lines in zip(files, _columns(pairs, split), strict=True):
                file.write("".join(f"{line}\n" for line in lines).encode())
            kept += len(pairs)
        if not kept:
            raise UserError(_no_pairs_message(split, read, dropped))
    return Collected(read, kept, dropped, line_breaks)


def _columns(pairs: list[Pair], split: CorpusSplit) -> list[list[str]]:
    """Return the source lines, the target lines, and the lines of the alignments of pairs, if there are any."""
    start = f"{split.data.tag} " if split.data.tag else ""
    columns = [[f"{start}{pair[0]}" for pair in pairs], [pair[1] for pair in pairs]]
    if split.columns:
        columns.append([alignment_line(pair[-1], split.data) for pair in pairs])
    return columns


def _refuse_control_characters(pairs: list[Pair], pairs_before: int, split: str) -> None:
    for number, pair in enumerate(pairs, pairs_before + 1):
        if any(map(pipeline.breaks_lines, pair[:2])):
            raise UserError(f"pair {number} of {split} holds a NUL inside a sentence: correct it first.")


def _no_pairs_message(split: CorpusSplit, read: int, dropped: Mapping[str, int]) -> str:
    if not read and split.split in registry.held_out(split.data):
        return f"data.hold_out={split.data.hold_out} takes no pair of the training text for {split.name}: raise it."
    if not read:
        return f"{split.name} is empty: it has no pairs. Check data.{split.split}."
    counts = ", ".join(f"{name} {count}" for name, count in dropped.items())
    return f"the filters leave none of the {read} pairs of {split.name} (dropped: {counts}): loosen them."


def _count_overlap(config: Config, tasks: PreparationTasks, splits: list[CorpusSplit]) -> None:
    """Count the development and test sentences that are also in the training text."""
    splits, manifest = sorted(splits, key=lambda each: not each.is_training_text), tasks.manifest

    def count() -> JsonObject:
        pairs = sum(manifest.collected(each.name).kept for each in splits if each.is_training_text)
        with counting_pairs(OVERLAP_TASK, pairs) as progress:
            found = count_overlap(config.data_folder, splits, progress.update)
        return {split: asdict(overlap) for split, overlap in found.items()}

    inputs: dict[str, object] = {"text": {each.name: manifest.outputs(collect_task(each.name)) for each in splits}}
    if len({each.languages for each in splits}) > 1:
        inputs["by_language"] = True  # earlier versions compared the sides without regard to their languages
    tasks.run(OVERLAP_TASK, inputs, [], count)


def _encode(config: Config, engine: Engine, split: CorpusSplit, manifest: Manifest) -> Encoded:
    """Write the token ids of a split."""
    with counting_pairs(encode_task(split.name), manifest.collected(split.name).kept) as progress:
        return encode_split(
            config.data_folder,
            split.name,
            split.languages,
            max_pieces=split.data.max_pieces if split.is_training_text else 0,
            columns=split.columns,
            engine=engine,
            advance=progress.update,
        )


def _about(config: Config) -> JsonObject:
    """Return the head of the manifest: the source of the text and the settings of its preparation."""
    data = asdict(config.data)
    recorded = {setting: data[setting] for setting in registry.source_named(config.data.source).settings}
    return {
        "corpus": config.data.corpus,
        "source": {"kind": config.data.source, **recorded},
        "languages": [config.data.source_lang, config.data.target_lang],
        "settings": {"data": data, "tokenizer": asdict(config.tokenizer)},
    }
