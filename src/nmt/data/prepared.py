"""Check that a prepared corpus is the one that the settings name: the same text, prepared in the same way."""

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from nmt.config.checks import NOT_OF_THE_TEXT, marked
from nmt.config.data import DataConfig, corpora_of, is_text
from nmt.config.folders import expanded
from nmt.config.keys import written
from nmt.config.tree import Config
from nmt.data import alignments
from nmt.data.corpora import CorpusSplit, corpus_splits
from nmt.data.filters import pipeline as filters
from nmt.data.gold_alignments import align_task
from nmt.data.layout import CorpusLayout
from nmt.data.manifest import read_manifest
from nmt.data.records import TOKENIZER_TASK, JsonObject, Manifest, TrainedTokenizer, collect_task, encode_task
from nmt.data.sources import registry
from nmt.data.sources.source import languages
from nmt.data.tokenizer_task import tokenizer_settings
from nmt.data.unread_settings import check_all_is_read
from nmt.errors import ConfigError, UserError
from nmt.storage.files import checksum
from nmt.text.tokenizer import Tokenizer

Change = tuple[str, Any, Any]
"""A setting, its value when the corpus was prepared, and its value now."""


def collect_settings(data: DataConfig, split: str) -> JsonObject:
    """Return the settings on which the text of a split depends."""
    held_out = registry.held_out(data)
    is_divided = held_out and split in ("train", *held_out)
    return {
        "languages": list(languages(data)),
        "tag": data.tag or None,
        "filters": filters.filter_settings(data) if split == "train" else {},
        "min_score": data.min_score if split == "train" and data.score_column else None,
        "columns": data.columns or None,  # None equals a missing key, as in records of earlier versions
        alignments.NAME: (split == "train" and bool(data.train_alignments)) or None,
        "hold_out": {"share": data.hold_out, "splits": held_out} if is_divided else None,
        "pos_tags": None if is_text(data.target_lang) else data.pos_tags,
    }


def longest_sentence(split: CorpusSplit) -> int:
    """Return the largest number of word pieces on a side; 0, no limit, for development and test text."""
    return split.data.max_pieces if split.is_training_text else 0


def require_prepared(config: Config) -> None:
    """Refuse a corpus that is not prepared, or was prepared from other text or with other settings."""
    prepared = _Prepared(config)
    splits = corpus_splits(config.data)
    for task in (TOKENIZER_TASK, *(task(each.name) for each in splits for task in (collect_task, encode_task))):
        if task not in prepared.manifest.tasks:
            raise prepared.unfinished(task)
    for split in splits:
        prepared.check_text(split)
    prepared.check_tokenizer()
    for split in splits:
        prepared.check_settings(split, encode_task(split.name), {"max_pieces": longest_sentence(split)})
        prepared.check_encoded(split)


def require_text(config: Config, names: Container[str]) -> None:
    """Refuse splits whose text is not the one that the settings name; a split without a record passes."""
    prepared = _Prepared(config)
    for split in corpus_splits(config.data):
        if split.name in names and collect_task(split.name) in prepared.manifest.tasks:
            prepared.check_text(split)


def prepared_tokenizer(config: Config) -> TrainedTokenizer | None:
    """Return the record of the tokenizer that was prepared with these settings; None if there is none."""
    if TOKENIZER_TASK not in read_manifest(config.data_folder).tasks:
        return None
    try:
        prepared = _Prepared(config)
        prepared.check_tokenizer()
    except UserError:
        return None
    return prepared.manifest.tokenizer()


def verify_task(folder: Path, name: str) -> None:
    """Check that the files of a task are those that it wrote; a task without a record passes."""
    record = read_manifest(folder).tasks.get(name)
    for output, digest in record.outputs.items() if record else ():
        if not (folder / output).is_file() or checksum(folder / output) != digest:
            raise UserError(f"{folder / output} is not what was prepared: run `make data` with the same settings")


class _Prepared:
    """A prepared corpus and the settings, to compare them."""

    def __init__(self, config: Config) -> None:
        check_all_is_read(config.data)
        self._config = config
        self.manifest = read_manifest(config.data_folder)
        self._before = _corpora_before(self.manifest)

    def unfinished(self, task: str) -> UserError:
        """Return the error that a task has not been done, or not since an earlier one was done again."""
        folder = self._config.data_folder
        return UserError(f"{folder} is not prepared ({task}): run `make data` with the same settings.")

    def check_encoded(self, split: CorpusSplit) -> None:
        """Refuse token ids that an interrupted preparation left: of earlier text, or newer than their record."""
        tasks, task = self.manifest.tasks, encode_task(split.name)
        record, store = tasks[task], CorpusLayout(self._config.data_folder).store(split.name)
        made_of = {
            "text": tasks[collect_task(split.name)].outputs,
            "tokenizer": self.manifest.tokenizer().checksum,
        }
        is_newer = store.exists() and checksum(store) != record.outputs.get(store.name)
        if self._different(task, made_of) or is_newer:
            raise self.unfinished(task)

    def check_settings(self, split: CorpusSplit, task: str, settings: JsonObject) -> None:
        """Refuse other settings of a split than a task has recorded."""
        if key := self._different(task, settings):
            raise self._refusal(self._changes(split), f"{task}: {key}")

    def check_text(self, split: CorpusSplit) -> None:
        """Refuse a split that was collected from other text or with other settings."""
        task = collect_task(split.name)
        recorded = self.manifest.tasks[task].inputs.get("source")
        found = registry.fingerprint_if_here(split.data, split.split)
        if recorded != json.loads(json.dumps(found)):
            self._check_names(split, recorded, found)
        self.check_settings(split, task, collect_settings(split.data, split.split))
        if split.split == "test":
            self._check_alignments(split)

    def _check_names(self, split: CorpusSplit, recorded: object, found: JsonObject | None) -> None:
        """Refuse a split whose text is not the recorded one, unless its files have only been moved away."""
        if self._changes(split, {*registry.text_settings(split.data, split.split), split.split}):
            raise self._refusal(self._changes(split))
        if found is None or _was_in_files(recorded, found):
            return
        read_from = registry.read_from(split.data, split.split)
        named = read_from if read_from in registry.recorded_settings(split.data) else "source"
        raise UserError(
            f"{self._config.data_folder} was prepared from other text of {split.name} than "
            f"{split.prefix}{named}={written(getattr(split.data, named))} has now: {_REMEDY}"
        )

    def _check_alignments(self, split: CorpusSplit) -> None:
        """Refuse another file of true alignments than the recorded one."""
        given, record = split.data.test_alignments, self.manifest.tasks.get(align_task(split.name))
        if not given or not expanded(given).is_file():
            if changes := self._changes(split, ["test_alignments"]):
                raise self._refusal(changes)
        elif record is None or checksum(expanded(given)) != record.inputs.get("sha256"):
            raise self._refusal([], f"{split.prefix}test_alignments={given}")

    def check_tokenizer(self) -> None:
        """Refuse a tokenizer that was trained with other settings, or is not that of the folder to keep it from.

        Training compares the tokenizer of the model to begin from with that model.
        """
        changes, settings = list(self._tokenizer_changes()), tokenizer_settings(self._config)
        folder = self._config.tokenizer.folder
        if settings["settings"] is not None:
            if key := self._different(TOKENIZER_TASK, settings):
                raise self._refusal(changes, f"{TOKENIZER_TASK}: {key}")
        elif folder and not self._is_kept_from(expanded(folder), changes):
            raise self._refusal(changes, f"tokenizer.folder={folder}")

    def _is_kept_from(self, folder: Path, changes: list[Change]) -> bool:
        try:
            return Tokenizer.load(folder).checksum == self.manifest.tokenizer().checksum
        except UserError:  # moved away
            return all(name != "tokenizer.folder" for name, *_ in changes)

    def _different(self, task: str, settings: JsonObject) -> str:
        """Return the first key whose value is not the recorded one; empty if all are."""
        recorded = self.manifest.tasks[task].inputs
        return next((key for key, value in settings.items() if recorded.get(key) != value), "")

    def _changes(self, split: CorpusSplit, names: Container[str] | None = None) -> list[Change]:
        """Return the settings of a corpus that differ from those of its preparation, if these are known."""
        before, now = self._before.get(split.corpus), split.data
        if before is None:
            return []
        others = marked(now, NOT_OF_THE_TEXT)
        wanted = [each.name for each in fields(now) if each.name not in others]
        pairs = [(name, getattr(before, name), getattr(now, name)) for name in wanted if names is None or name in names]
        return [(f"{split.prefix}{name}", old, new) for name, old, new in pairs if old != new]

    def _tokenizer_changes(self) -> Iterator[Change]:
        before, now = self.manifest.settings.get("tokenizer"), self._config.tokenizer
        if isinstance(before, dict):
            pairs = ((each.name, before.get(each.name, each.default), getattr(now, each.name)) for each in fields(now))
            yield from ((f"tokenizer.{name}", old, new) for name, old, new in pairs if old != new)

    def _refusal(self, changes: list[Change], otherwise: str = "") -> UserError:
        """Name the changed settings, or something else if the settings of the preparation are not known."""
        settings = "; ".join(f"{name}={written(old)}, not {written(new)}" for name, old, new in changes)
        how = settings or f"other settings ({otherwise})"
        return UserError(f"{self._config.data_folder} was prepared with {how}: {_REMEDY}")


_REMEDY = "run `make data` with these settings, or give this corpus a name of its own with data.corpus."


def _was_in_files(recorded: object, found: JsonObject) -> bool:
    """Return whether text came from a local copy of a Hub data set that is gone, so that the setting is an id now."""
    return isinstance(recorded, dict) and "files" in recorded and "files" not in found


def _corpora_before(manifest: Manifest) -> Mapping[str, DataConfig]:
    """Return the settings of each corpus when it was prepared; none if this version cannot read them."""
    data, known = manifest.settings.get("data"), {each.name for each in fields(DataConfig)}
    if not isinstance(data, dict):
        return {}
    try:
        before = DataConfig(**{name: value for name, value in data.items() if name in known})
        return {name: corpus.settings for name, corpus in corpora_of(before).items()}
    except (ConfigError, TypeError, AttributeError):
        return {}
