"""What prepared text depends on, and the check that it is the text that the settings name."""

import json
from collections.abc import Container, Mapping
from dataclasses import asdict

from nmt.config.data import NOT_OF_THE_TEXT, DataConfig, is_text
from nmt.config.folders import expanded
from nmt.config.keys import written
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.data import alignments
from nmt.data.corpora import CorpusSplit, check_all_is_read, corpus_splits
from nmt.data.filters.pipeline import filter_settings
from nmt.data.gold_alignments import align_task
from nmt.data.layout import CorpusLayout
from nmt.data.make_tokenizer import tokenizer_settings
from nmt.data.manifest import read_manifest
from nmt.data.records import TOKENIZER_TASK, JsonObject, Manifest, TrainedTokenizer, collect_task, encode_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint
from nmt.errors import UserError
from nmt.storage.files import checksum
from nmt.text.tokenizer import Tokenizer

REMEDY = "run `make data` with these settings, or give this corpus a name of its own with data.corpus."


def inputs_of(config: Config, manifest: Manifest, split: CorpusSplit, source: Fingerprint | None) -> JsonObject:
    """Return all that the text of a split depends on, given the fingerprint of its source; None equals a missing key.

    The development and test text that some filters compare the training text with must be collected.
    """
    data, held_out = split.data, registry.held_out(split.data)
    is_divided = held_out and split.split in ("train", *held_out)
    found: dict[str, object] = {
        "source": source,
        "languages": list(split.languages),
        "tag": data.tag or None,
        "filters": filter_settings(data) if split.is_training_text else {},
        "columns": data.columns or None,
        alignments.NAME: (split.is_training_text and bool(data.train_alignments)) or None,
        "hold_out": {"share": data.hold_out, "splits": held_out} if is_divided else None,
        "pos_tags": None if is_text(data.target_lang) else data.pos_tags,
    }
    if split.is_training_text and data.drop_overlap:
        found["held_out_text"] = {
            each.name: manifest.outputs(collect_task(each.name)) for each in held_out_splits(config.data)
        }
    return found


def held_out_splits(data: DataConfig) -> list[CorpusSplit]:
    """Return the development and test text of all corpora."""
    return [each for each in corpus_splits(data) if not each.is_training_text]


def encode_inputs(manifest: Manifest, split: CorpusSplit) -> JsonObject:
    """Return all that the token ids of a split depend on."""
    return {
        "text": manifest.outputs(collect_task(split.name)),
        "tokenizer": manifest.tokenizer().checksum,
        "max_pieces": split.data.max_pieces if split.is_training_text else 0,  # 0 keeps all
    }


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
        prepared.check_encoded(split)


def require_text(config: Config, names: Container[str]) -> None:
    """Refuse splits whose text is not the one that the settings name; a split without a record passes."""
    prepared = _Prepared(config)
    for split in corpus_splits(config.data):
        if split.name in names and collect_task(split.name) in prepared.manifest.tasks:
            prepared.check_text(split)


def prepared_tokenizer(config: Config) -> TrainedTokenizer | None:
    """Return the record of the tokenizer that was prepared with these settings; None if there is none."""
    try:
        prepared = _Prepared(config)
        if TOKENIZER_TASK in prepared.manifest.tasks:
            prepared.check_tokenizer()
            return prepared.manifest.tokenizer()
    except UserError:
        pass
    return None


class _Prepared:
    """A prepared corpus and the settings, to compare them."""

    def __init__(self, config: Config) -> None:
        check_all_is_read(config.data)
        self._config, self.manifest = config, read_manifest(config.data_folder)
        before = flatten(self.manifest.settings)
        now = flatten({"data": asdict(config.data), "tokenizer": asdict(config.tokenizer)})
        self._changes: Mapping[str, str] = {
            name: f"{name}={written(before[name])}, not {written(now[name])}"
            for name in now
            if name in before and before[name] != now[name] and name.rpartition(".")[2] not in NOT_OF_THE_TEXT
        }

    def unfinished(self, task: str) -> UserError:
        """Return the error that a task has not been done, or not since an earlier one was done again."""
        folder = self._config.data_folder
        return UserError(f"{folder} is not prepared ({task}): run `make data` with the same settings.")

    def check_text(self, split: CorpusSplit) -> None:
        """Refuse a split that was collected from other text or with other settings."""
        task, found = collect_task(split.name), registry.fingerprint_if_here(split.data, split.split)
        different = self._different(task, inputs_of(self._config, self.manifest, split, found))
        if "source" in different:
            self._check_source(split, found)
        if others := [key for key in different if key not in ("source", "held_out_text")]:
            raise self._refusal(split.prefix, "data.", otherwise=f"{task}: {others[0]}")
        if "held_out_text" in different:
            raise self.unfinished(task)
        if split.split == "test":
            self._check_alignments(split)

    def _check_source(self, split: CorpusSplit, found: Fingerprint | None) -> None:
        """Refuse a split whose text is not the recorded one, unless its files have only been moved away."""
        names = [f"{split.prefix}{name}" for name in registry.text_settings(split.data, split.split)]
        if any(name in self._changes for name in names):
            raise self._refusal(*names)
        recorded = self.manifest.tasks[collect_task(split.name)].inputs.get("source")
        # a local copy of a data set of the Hub may be gone, so that the setting is an id now
        was_copied = isinstance(recorded, dict) and "files" in recorded and "files" not in (found or {})
        if found is None or was_copied:
            return
        named = next((name for name in names if name.endswith(registry.read_from(split.data, split.split))), names[0])
        value = written(getattr(split.data, named.rpartition(".")[2]))
        raise UserError(
            f"{self._config.data_folder} was prepared from other text of {split.name} than {named}={value} has now: "
            f"{REMEDY}"
        )

    def _check_alignments(self, split: CorpusSplit) -> None:
        """Refuse another file of true alignments than the recorded one."""
        given, record = split.data.test_alignments, self.manifest.tasks.get(align_task(split.name))
        name = f"{split.prefix}test_alignments"
        if not given or not expanded(given).is_file():
            if name in self._changes:
                raise self._refusal(name)
        elif record is None or checksum(expanded(given)) != record.inputs.get("sha256"):
            raise self._refusal(name, otherwise=f"{name}={given}")

    def check_tokenizer(self) -> None:
        """Refuse a tokenizer that was trained with other settings, or is not that of the folder to keep it from.

        Training compares the tokenizer of the model to begin from with that model.
        """
        settings, folder = tokenizer_settings(self._config), self._config.tokenizer.folder
        if settings["settings"] is not None:
            if different := self._different(TOKENIZER_TASK, settings):
                raise self._refusal("tokenizer.", otherwise=f"{TOKENIZER_TASK}: {different[0]}")
        elif folder:
            try:
                is_same = Tokenizer.load(expanded(folder)).checksum == self.manifest.tokenizer().checksum
            except UserError:  # moved away
                is_same = "tokenizer.folder" not in self._changes
            if not is_same:
                raise self._refusal("tokenizer.", otherwise=f"tokenizer.folder={folder}")

    def check_encoded(self, split: CorpusSplit) -> None:
        """Refuse token ids that an interrupted preparation left: of earlier text, or newer than their record."""
        task, store = encode_task(split.name), CorpusLayout(self._config.data_folder).store(split.name)
        different = self._different(task, encode_inputs(self.manifest, split))
        if "max_pieces" in different:
            raise self._refusal(split.prefix, "data.max_pieces", otherwise=f"{task}: max_pieces")
        if different or (store.exists() and checksum(store) != self.manifest.outputs(task).get(store.name)):
            raise self.unfinished(task)

    def _different(self, task: str, inputs: JsonObject) -> list[str]:
        """Return the inputs of a task whose values are not the recorded ones."""
        recorded = self.manifest.tasks[task].inputs
        return [key for key, value in inputs.items() if recorded.get(key) != json.loads(json.dumps(value))]

    def _refusal(self, *starts: str, otherwise: str = "") -> UserError:
        """Name the changed settings that begin with some words, or something else if they are not known."""
        changes = "; ".join(change for name, change in self._changes.items() if name.startswith(starts))
        how = changes or f"other settings ({otherwise})"
        return UserError(f"{self._config.data_folder} was prepared with {how}: {REMEDY}")
