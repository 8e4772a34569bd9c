"""Prepare a corpus, from its source to token ids: collect text, train the tokenizer, encode; each task runs once."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from nmt.compute.cores import usable_cores
from nmt.compute.processes import run_in_process
from nmt.config.schema import TREES, Config, DataConfig, TokenizerConfig
from nmt.data import encode, filters, store
from nmt.data.annotate import annotate
from nmt.data.layout import CorpusLayout, text_names
from nmt.data.manifest import PreparationTasks, exclusive_corpus, read_manifest
from nmt.data.overlap import count_overlap
from nmt.data.progress import PairProgress
from nmt.data.records import (
    OVERLAP_TASK,
    TOKENIZER_TASK,
    Collected,
    JsonObject,
    Manifest,
    SampledLines,
    TrainedTokenizer,
    collect_task,
    encode_task,
)
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint, Pair, languages
from nmt.errors import UserError
from nmt.storage.files import checksum, replacing
from nmt.text import train_tokenizer
from nmt.text.extend_tokenizer import check_joint, extend
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer, trained_file_names

Say = Callable[[str], None]
"""Takes a line of progress."""


@dataclass(frozen=True, slots=True)
class OriginTokenizer:
    """The tokenizer of the model that training will begin from."""

    tokenizer: Tokenizer
    name: str
    """What messages call that model."""


def prepare(config: Config, say: Say = print, origin: OriginTokenizer | None = None) -> Manifest:
    """Bring the prepared corpus up to date with the settings; return its manifest.

    Args:
        config: All settings.
        say: Takes a line of progress.
        origin: The tokenizer to keep or extend; None if the settings ask for neither.
    """
    folder = config.data_folder
    with exclusive_corpus(folder):
        tasks = PreparationTasks(folder, _about(config), say)
        splits = registry.splits(config.data)
        fingerprints = {split: registry.fingerprint(config.data, config.seed, split) for split in splits}
        names = [_collect(config, tasks, split, fingerprints[split]) for split in splits]
        names += chain.from_iterable(annotate(config, tasks, split, fingerprints[split]) for split in splits)
        names.append(_count_overlap(config, tasks, [split for split in splits if split != "train"]))
        names.append(_make_tokenizer(config, tasks, origin))
        names += [_encode(config, tasks, split) for split in splits]
        return tasks.finish(names)


def require_prepared(config: Config) -> None:
    """Refuse to continue with a corpus that is not prepared, or was prepared with other settings."""
    records = read_manifest(config.data_folder).tasks
    data = config.data
    wanted: dict[str, JsonObject] = {TOKENIZER_TASK: _tokenizer_settings(config)}
    for split in registry.splits(data):
        wanted[collect_task(split)] = _collect_settings(data, split)
        wanted[encode_task(split)] = {"max_pieces": _max_pieces(data, split)}
    for name, settings in wanted.items():
        if name not in records:
            raise UserError(f"{config.data_folder} is not prepared ({name}): run `make data` with the same settings.")
        for key, value in settings.items():
            if records[name].inputs.get(key) != value:
                raise UserError(
                    f"{config.data_folder} was prepared with other settings ({name}: {key}): run `make data` with "
                    "these, or give this corpus a name of its own with data.corpus."
                )


def verify_task(folder: Path, name: str) -> None:
    """Check that the files of a task are those that it wrote; a task without a record passes."""
    record = read_manifest(folder).tasks.get(name)
    for output, digest in record.outputs.items() if record else ():
        if not (folder / output).is_file() or checksum(folder / output) != digest:
            raise UserError(f"{folder / output} is not what was prepared: run `make data` with the same settings")


def _collect(config: Config, tasks: PreparationTasks, split: str, fingerprint: Fingerprint) -> str:
    """Read a split from its source and write its text, filtered, one sentence per line."""
    name = collect_task(split)
    data = config.data
    tasks.run(
        name,
        {"source": fingerprint, **_collect_settings(data, split)},
        text_names(split, languages(data)),
        lambda: asdict(_write_text(config.data_folder, data, config.seed, split)),
    )
    return name


def _collect_settings(data: DataConfig, split: str) -> JsonObject:
    """Return the settings on which the text of a split depends."""
    held_out = registry.held_out(data)
    is_divided = held_out and split in ("train", *held_out)
    limits = {setting: getattr(data, setting) for setting in filters.filter_settings()}
    return {
        "languages": list(languages(data)),
        "filters": limits if split == "train" else {},
        "columns": data.columns or None,  # None equals a missing key, as in records of earlier versions
        "pos_tags": data.pos_tags if data.target_lang == TREES else None,
        "hold_out": {"share": data.hold_out, "splits": held_out} if is_divided else None,
    }


def _filters(data: DataConfig, split: str) -> list[filters.Filter]:
    """Return the filters of a split; development and test text that the user names is kept as it is."""
    if split == "train":
        return filters.training_filters(data)
    return filters.sentence_filters() if split in registry.held_out(data) else []


def _write_text(folder: Path, data: DataConfig, seed: int, split: str) -> Collected:
    chosen = filters.FilterChain(_filters(data, split), data)
    read = kept = line_breaks = 0
    with ExitStack() as stack:
        paths = CorpusLayout(folder).texts(split, languages(data))
        partials = [stack.enter_context(replacing(path)) for path in paths]
        files = [stack.enter_context(partial.open("wb")) for partial in partials]
        progress = stack.enter_context(PairProgress(collect_task(split)))
        for cells in filters.chunks(registry.pairs(data, seed, split)):
            chunk, broken = filters.join_lines(cells)
            pairs = chosen.apply(chunk)
            if not chosen.dropped:
                _refuse_control_characters(pairs, read, split)
            for side, file in enumerate(files):
                file.write("".join(f"{pair[side]}\n" for pair in pairs).encode())
            read += len(chunk)
            kept += len(pairs)
            line_breaks += broken
            progress.advance(len(chunk))
        if not kept:
            raise UserError(_no_pairs_message(data, split, read, chosen.dropped))
    return Collected(read, kept, chosen.dropped, line_breaks)


def _refuse_control_characters(pairs: list[Pair], pairs_before: int, split: str) -> None:
    for number, pair in enumerate(pairs, pairs_before + 1):
        if any(map(filters.breaks_lines, pair)):
            raise UserError(f"pair {number} of {split} holds a NUL inside a sentence: correct it first.")


def _no_pairs_message(data: DataConfig, split: str, read: int, dropped: Mapping[str, int]) -> str:
    if not read and split in registry.held_out(data):
        return f"data.hold_out={data.hold_out} takes no pair of the training text for {split}: raise it."
    if not read:
        return f"{split} is empty: it has no pairs. Check data.{split}."
    counts = ", ".join(f"{name} {count}" for name, count in dropped.items())
    return f"the filters leave none of the {read} pairs of {split} (dropped: {counts}): loosen them."


def _count_overlap(config: Config, tasks: PreparationTasks, splits: list[str]) -> str:
    """Count the development and test sentences that are also in the training text."""

    def count() -> JsonObject:
        with PairProgress(OVERLAP_TASK, tasks.manifest.collected("train").kept) as progress:
            counts = count_overlap(config.data_folder, splits, languages(config.data), progress.advance)
        return {split: asdict(overlap) for split, overlap in counts.items()}

    texts = {split: tasks.outputs(collect_task(split)) for split in ("train", *splits)}
    tasks.run(OVERLAP_TASK, {"text": texts}, [], count)
    return OVERLAP_TASK


def uses_origin_tokenizer(config: Config) -> bool:
    """Return whether the settings keep or extend the tokenizer of the model that training begins from."""
    return bool(config.training.init_from) and config.training.init_vocabulary != "new"


def _tokenizer_settings(config: Config) -> JsonObject:
    """Return the settings on which the tokenizer depends; None equals a missing key."""
    vocabulary = config.training.init_vocabulary if uses_origin_tokenizer(config) else None
    return {"settings": None if vocabulary == "old" else asdict(config.tokenizer), "vocabulary": vocabulary}


def _make_tokenizer(config: Config, tasks: PreparationTasks, origin: OriginTokenizer | None) -> str:
    """Train the tokenizer, or keep or extend that of the model that training begins from."""
    inputs = {key: value for key, value in _tokenizer_settings(config).items() if value is not None}
    if "settings" in inputs:
        inputs["text"] = tasks.outputs(collect_task("train"))
    names = trained_file_names(joint=config.tokenizer.joint)
    if uses_origin_tokenizer(config):
        assert origin is not None
        check_joint(origin.tokenizer, joint=config.tokenizer.joint, name=origin.name)
        inputs["tokenizer"] = origin.tokenizer.checksum
        names = origin.tokenizer.file_names
    pairs = tasks.manifest.collected("train").kept
    tasks.run(TOKENIZER_TASK, inputs, names, lambda: asdict(_write_tokenizer(config, pairs, origin)))
    return TOKENIZER_TASK


def _write_tokenizer(config: Config, pairs: int, origin: OriginTokenizer | None) -> TrainedTokenizer:
    """Save the tokenizer, which is trained on `pairs` pairs unless the old one is kept."""
    if origin is not None and config.training.init_vocabulary == "old":
        chosen, lines = origin.tokenizer, list[SampledLines]()
    else:
        chosen, lines = _trained_tokenizer(config, pairs)
        if origin is not None:
            chosen = extend(origin.tokenizer, chosen, config.tokenizer.vocab_size, origin.name)
    chosen.save(config.data_folder)
    return TrainedTokenizer(chosen.checksum, chosen.source_size, chosen.target_size, lines)


def _trained_tokenizer(config: Config, pairs: int) -> tuple[Tokenizer, list[SampledLines]]:
    """Train one model on both sides, or one per side; trees have a symbol per bracket and tag."""
    sides = CorpusLayout(config.data_folder).texts("train", languages(config.data))
    texts = [list(sides)] if config.tokenizer.joint else [[side] for side in sides]
    models = [
        run_in_process(_train_symbols, files[0])
        if files[0].suffix == f".{TREES}"
        else run_in_process(_train_model, files, pairs * len(files), config.tokenizer)
        for files in texts
    ]
    return Tokenizer(*(model for model, _ in models)), [SampledLines(**asdict(seen)) for _, seen in models]


def _train_model(files: list[Path], lines: int, settings: TokenizerConfig) -> tuple[bytes, train_tokenizer.LinesSeen]:
    return train_tokenizer.train(chain.from_iterable(map(read_lines, files)), lines, settings)


def _train_symbols(file: Path) -> tuple[bytes, train_tokenizer.LinesSeen]:
    return train_tokenizer.train_symbols(read_lines(file))


def _encode(config: Config, tasks: PreparationTasks, split: str) -> str:
    name = encode_task(split)
    max_pieces = _max_pieces(config.data, split)

    def encode_split() -> JsonObject:
        with PairProgress(name, tasks.manifest.collected(split).kept) as progress:
            record = encode.encode_split(
                config.data_folder,
                split,
                languages(config.data),
                max_pieces=max_pieces,
                workers=config.runtime.workers or usable_cores(),
                advance=progress.advance,
            )
        return asdict(record)

    tasks.run(
        name,
        {
            "text": tasks.outputs(collect_task(split)),
            "tokenizer": tasks.manifest.tokenizer().checksum,
            "max_pieces": max_pieces,
        },
        store.file_names(split, languages(config.data)),
        encode_split,
    )
    return name


def _max_pieces(data: DataConfig, split: str) -> int:
    """Return the largest number of word pieces on a side; 0, no limit, for development and test text."""
    return data.max_pieces if split == "train" else 0


def _about(config: Config) -> JsonObject:
    """Return the head of the manifest: the source of the text and the settings of its preparation."""
    data = asdict(config.data)
    recorded = {setting: data[setting] for setting in registry.recorded_settings(config.data)}
    return {
        "corpus": config.data.corpus,
        "source": {"kind": config.data.source, **recorded},
        "languages": list(languages(config.data)),
        "settings": {"seed": config.seed, "data": data, "tokenizer": asdict(config.tokenizer)},
    }
