"""From a source to token ids: collect the text, train the tokenizer, encode; each step done once."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.compute.cores import usable_cores
from nmt.compute.processes import run_in_process
from nmt.config.schema import Config, DataConfig, TokenizerConfig
from nmt.data import encode, filters, store
from nmt.data.manifest import PreparationTasks, exclusive_corpus, read_records
from nmt.data.overlap import count_overlap
from nmt.data.progress import PairProgress
from nmt.data.sources import registry
from nmt.data.sources.files import Languages
from nmt.errors import UserError
from nmt.storage.files import checksum, replacing
from nmt.text import tokenizer, train_tokenizer
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer

Say = Callable[[str], None]


def prepare(config: Config, say: Say = print) -> dict[str, Any]:
    """Bring the prepared corpus up to date with the settings; give the records of its steps."""
    folder = config.data_folder
    with exclusive_corpus(folder):
        tasks = PreparationTasks(folder, _about(config), say)
        splits = registry.splits(config.data)
        fingerprints = {split: registry.fingerprint(config.data, config.seed, split) for split in splits}
        done = [_collect(config, tasks, split, fingerprints[split]) for split in splits]
        done.append(_count_overlap(config, tasks, [split for split in splits if split != "train"]))
        done.append(_train_tokenizer(config, tasks))
        done += [_encode(config, tasks, split) for split in splits]
        return tasks.finish(done)


def require_prepared(config: Config) -> None:
    """Refuse to go on with a corpus that was prepared with other settings, or not at all."""
    records = read_records(config.data_folder)
    data = config.data
    wanted: dict[str, dict[str, Any]] = {"tokenizer": {"settings": asdict(config.tokenizer)}}
    for split in registry.splits(data):
        wanted[f"collect {split}"] = _collect_settings(data, split)
        wanted[f"encode {split}"] = {"max_pieces": _max_pieces(data, split)}
    for name, settings in wanted.items():
        if name not in records:
            raise UserError(f"{config.data_folder} is not prepared ({name}): run `make data` with the same settings.")
        for key, value in settings.items():
            if records[name]["inputs"].get(key) != value:
                raise UserError(
                    f"{config.data_folder} was prepared with other settings ({name}: {key}): run `make data` with "
                    "these, or give this corpus a name of its own with data.corpus."
                )


def verify_step(folder: Path, name: str) -> None:
    """Make sure that the files of a step are those that it wrote, where there is a record of it."""
    outputs = read_records(folder).get(name, {"outputs": {}})["outputs"]
    for output, digest in outputs.items():
        if not (folder / output).is_file() or checksum(folder / output) != digest:
            raise UserError(f"{folder / output} is not what was prepared: run `make data` with the same settings")


def _collect(config: Config, tasks: PreparationTasks, split: str, fingerprint: dict[str, Any]) -> str:
    """Read a split from its source and write its text, one sentence a line, filtered as `_filters` says."""
    name = f"collect {split}"
    data = config.data
    languages = _languages(data)
    tasks.run(
        name,
        {"source": fingerprint, **_collect_settings(data, split)},
        [f"{split}.{language}" for language in languages],
        lambda: _write_text(config.data_folder, data, config.seed, split),
    )
    return name


def _collect_settings(data: DataConfig, split: str) -> dict[str, Any]:
    keys = ("drop_copies", "max_words", "max_ratio", "deduplicate")
    limits = {key: getattr(data, key) for key in keys}
    aside = registry.held_out(data)
    divided = aside and split in ("train", *aside)
    return {
        "languages": list(_languages(data)),
        "filters": limits if split == "train" else {},
        "columns": data.columns or None,  # None equals a key that is missing, as in records of earlier versions
        "hold_out": {"share": data.hold_out, "splits": aside} if divided else None,
    }


def _filters(data: DataConfig, split: str) -> list[filters.Filter]:
    """Return what a split is filtered by: a test set that the user names is kept as it is."""
    if split == "train":
        return filters.training_filters(data)
    return filters.sentence_filters() if split in registry.held_out(data) else []


def _write_text(folder: Path, data: DataConfig, seed: int, split: str) -> dict[str, Any]:
    wanted = _filters(data, split)
    dropped = {each.name: 0 for each in wanted}
    read = kept = line_breaks = 0
    with ExitStack() as stack:
        partials = [stack.enter_context(replacing(folder / f"{split}.{language}")) for language in _languages(data)]
        files = [stack.enter_context(partial.open("wb")) for partial in partials]
        progress = stack.enter_context(PairProgress(f"collect {split}"))
        for cells in filters.chunks(registry.pairs(data, seed, split)):
            chunk, broken = filters.join_lines(cells)
            pairs = filters.apply(wanted, chunk, dropped)
            if not wanted:
                _refuse_control_characters(pairs, read, split)
            for side, file in enumerate(files):
                file.write("".join(f"{pair[side]}\n" for pair in pairs).encode())
            read += len(chunk)
            kept += len(pairs)
            line_breaks += broken
            progress.advance(len(chunk))
        if not kept:
            raise UserError(_nothing(data, split, read, dropped))
    return {"read": read, "kept": kept, "dropped": dropped, "line_breaks": line_breaks}


def _refuse_control_characters(pairs: list[tuple[str, str]], before: int, split: str) -> None:
    for number, pair in enumerate(pairs, before + 1):
        if any(map(filters.breaks_lines, pair)):
            raise UserError(f"pair {number} of {split} holds a NUL inside a sentence: mend it first.")


def _nothing(data: DataConfig, split: str, read: int, dropped: dict[str, int]) -> str:
    if not read and split in registry.held_out(data):
        return f"data.hold_out={data.hold_out} sets no pair of the training text aside for {split}: raise it."
    if not read:
        return f"{split} is empty: there is not one pair in it. Check data.{split}."
    counts = ", ".join(f"{name} {count}" for name, count in dropped.items())
    return f"the filters leave none of the {read} pairs of {split} (dropped: {counts}): loosen them."


def _count_overlap(config: Config, tasks: PreparationTasks, splits: list[str]) -> str:
    """Count the development and test sentences that the training text holds, too."""
    name = "overlap"
    languages = _languages(config.data)

    def work() -> dict[str, Any]:
        with PairProgress(name, tasks.result("collect train")["kept"]) as progress:
            return count_overlap(config.data_folder, splits, languages, progress.advance)

    tasks.run(name, {"text": {split: tasks.outputs(f"collect {split}") for split in ("train", *splits)}}, [], work)
    return name


def _train_tokenizer(config: Config, tasks: PreparationTasks) -> str:
    name = "tokenizer"
    joint = config.tokenizer.joint
    tasks.run(
        name,
        {"settings": asdict(config.tokenizer), "text": tasks.outputs("collect train")},
        tokenizer.file_names(joint=joint),
        lambda: _write_tokenizer(config, tasks.result("collect train")["kept"]),
    )
    return name


def _write_tokenizer(config: Config, pairs: int) -> dict[str, Any]:
    folder = config.data_folder
    sides = [folder / f"train.{language}" for language in _languages(config.data)]
    groups = [sides] if config.tokenizer.joint else [[side] for side in sides]
    trained = [run_in_process(_train_on, group, pairs * len(group), config.tokenizer) for group in groups]
    made = Tokenizer(*(model for model, _ in trained))
    made.save(folder)
    return {
        "checksum": made.checksum,
        "source_vocabulary": made.source_size,
        "target_vocabulary": made.target_size,
        "lines": [asdict(seen) for _, seen in trained],
    }


def _train_on(files: list[Path], lines: int, settings: TokenizerConfig) -> tuple[bytes, train_tokenizer.LinesSeen]:
    return train_tokenizer.train(chain.from_iterable(map(read_lines, files)), lines, settings)


def _encode(config: Config, tasks: PreparationTasks, split: str) -> str:
    name = f"encode {split}"
    languages = _languages(config.data)
    most = _max_pieces(config.data, split)

    def work() -> dict[str, Any]:
        with PairProgress(name, tasks.result(f"collect {split}")["kept"]) as progress:
            return encode.encode_split(
                config.data_folder,
                split,
                languages,
                max_pieces=most,
                workers=_workers(config),
                advance=progress.advance,
            )

    tasks.run(
        name,
        {
            "text": tasks.outputs(f"collect {split}"),
            "tokenizer": tasks.result("tokenizer")["checksum"],
            "max_pieces": most,
        },
        store.file_names(split, languages),
        work,
    )
    return name


def _languages(data: DataConfig) -> Languages:
    return data.source_lang, data.target_lang


def _max_pieces(data: DataConfig, split: str) -> int:
    return data.max_pieces if split == "train" else 0


def _workers(config: Config) -> int:
    return config.runtime.workers or usable_cores()


def _about(config: Config) -> dict[str, Any]:
    """Return the head of the manifest: where the text comes from and how it is prepared."""
    data = asdict(config.data)
    hub = ("hub_dataset", "hub_config", "hub_revision")
    paths = ("train", "valid", "test")
    keys = {"hub": (*hub, *paths), "files": paths, "demo": ()}[config.data.source]
    return {
        "corpus": config.data.corpus,
        "source": {"kind": config.data.source, **{key: data[key] for key in keys}},
        "languages": list(_languages(config.data)),
        "settings": {"seed": config.seed, "data": data, "tokenizer": asdict(config.tokenizer)},
    }
