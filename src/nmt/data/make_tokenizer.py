"""The task of preparation that makes the tokenizer: train it on all corpora, or keep or extend an earlier one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from nmt.compute.processes import run_in_process
from nmt.config.data import DataConfig, TokenizerConfig, is_text
from nmt.config.folders import expanded
from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.data.corpora import tags_of, training_splits, untagged
from nmt.data.manifest import TOKENIZER_TASK, Manifest, Task, TrainedTokenizer, collect_task
from nmt.data.mixture import shares_of
from nmt.errors import UserError
from nmt.text import train_tokenizer
from nmt.text.lines import read_lines
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer, trained_file_names

TRAINING_SETTINGS = ("model_type", "vocab_size", "joint")
INSTEAD = {"tokenizer.folder": "tokenizer.folder=''", "training.init_from": "training.init_vocabulary=new"}
"""Settings that name a tokenizer to keep or extend, each with the setting that trains a new one instead."""


def earlier_tokenizer(config: Config) -> str:
    """Return the setting that names a tokenizer to keep or extend; empty if a new one is trained."""
    if config.tokenizer.folder:
        return "tokenizer.folder"
    return "training.init_from" if config.training.uses_old_vocabulary else ""


def is_trained(config: Config) -> bool:
    """Return whether pieces are learned from the text."""
    earlier = earlier_tokenizer(config)
    return not earlier or (earlier == "training.init_from" and config.training.init_vocabulary == "extend")


def tokenizer_task(config: Config, manifest: Manifest, *, checking: bool = False) -> Task:
    """Return the task that makes the tokenizer; when `checking`, an earlier tokenizer may be gone."""
    splits, done = training_splits(config.data), manifest.tasks.get(TOKENIZER_TASK)
    learns, tags = is_trained(config), tags_of(splits) or None
    text = {name: sum_ for each in splits for name, sum_ in manifest.outputs(collect_task(each.name)).items()}
    inputs: dict[str, object] = {
        "tokenizer": None,
        "settings": {name: getattr(config.tokenizer, name) for name in TRAINING_SETTINGS} if learns else None,
        "text": text if learns else None,
        "tags": tags,
    }
    names: Iterable[str] = trained_file_names(joint=config.tokenizer.joint)
    if earlier_tokenizer(config):
        try:
            tokenizer = _load_earlier(config)
            inputs["tokenizer"], names = tokenizer.checksum, tokenizer.files
        except UserError:
            if not checking:
                raise
        is_same = done and inputs["tokenizer"] in (None, manifest.tokenizer().checksum)
        if done and is_same and not learns and done.inputs.get("tags") == tags:
            # however the tokenizer was made, it is the one to keep
            inputs = done.inputs | ({} if inputs["tokenizer"] else {"tokenizer": None})
    return Task(TOKENIZER_TASK, inputs, list(names), lambda: _make(config, manifest))


def _load_earlier(config: Config) -> Tokenizer:
    """Load the tokenizer to keep or extend; it must have as many vocabularies as the settings ask for."""
    setting, joint = earlier_tokenizer(config), config.tokenizer.joint
    of_settings = setting == "tokenizer.folder"
    # runs import data
    folder = expanded(config.tokenizer.folder) if of_settings else imported("nmt.runs.origin:tokenizer_folder")(config)
    tokenizer = Tokenizer.load(folder)
    if tokenizer.joint != joint:
        raise UserError(
            f"the tokenizer of {setting} has {'one vocabulary' if tokenizer.joint else 'a vocabulary per language'}, "
            f"but tokenizer.joint={str(joint).lower()}: set tokenizer.joint={str(tokenizer.joint).lower()}, or "
            f"{INSTEAD[setting]}"
        )
    return tokenizer


def _make(config: Config, manifest: Manifest) -> TrainedTokenizer:
    """Save the tokenizer."""
    setting, tags = earlier_tokenizer(config), tags_of(training_splits(config.data))
    if not setting:
        tokenizer = _train(config, manifest)
    else:
        tokenizer = _load_earlier(config)
        if is_trained(config):
            from nmt.text.extend_tokenizer import extend  # noqa: PLC0415 - few runs need it

            tokenizer = extend(tokenizer, _train(config, manifest), config.tokenizer.vocab_size, setting)
        for tag, ids in zip(tags, tokenizer.encode_source(tags), strict=True):
            if len(ids) != 1 or ids == [UNK]:
                raise UserError(
                    f"the tokenizer of {setting} has no piece for the tag {tag}: take one of its own tags, or set "
                    f"{INSTEAD[setting]}"
                )
    tokenizer.save(config.data_folder)
    return TrainedTokenizer(tokenizer.checksum, tokenizer.source_size, tokenizer.target_size)


class Text(NamedTuple):
    """The text of a corpus that a tokenizer is trained on."""

    files: list[Path]
    lines: int
    tag: str
    """The tag at the beginning of some lines, which is not trained on."""

    def take(self, count: int) -> Iterator[str]:
        """Yield all lines repeatedly, then a random sample for the rest of the wanted number."""
        passes, rest = divmod(count, self.lines)
        for _ in range(passes):
            yield from self._read()
        yield from train_tokenizer.sample(self._read(), self.lines, rest) if rest else ()

    def _read(self) -> Iterator[str]:
        return chain.from_iterable((untagged(line, self.tag) for line in read_lines(file)) for file in self.files)


def _train(config: Config, manifest: Manifest) -> Tokenizer:
    """Train one model on both sides, or one per side; trees have a model of their symbols.

    Each is trained in another process, because the trainer uses much memory and cannot be interrupted.
    """
    splits = training_splits(config.data)

    def train(*sides: int) -> bytes:
        texts = {}
        for each in splits:
            files = [config.data_folder / each.texts[side] for side in sides]
            texts[each.corpus] = Text(files, len(files) * manifest.collected(each.name).kept, each.data.tag)
        if sides == (1,) and not is_text(config.data.target_lang):
            files = [file for text in texts.values() for file in text.files]
            return run_in_process(train_tokenizer.train_on_symbols, files)
        return run_in_process(_train_model, texts, config.data, config.tokenizer, tags_of(splits) if 0 in sides else [])

    return Tokenizer(*([train(0, 1)] if config.tokenizer.joint else [train(0), train(1)]))


def _train_model(texts: Mapping[str, Text], data: DataConfig, settings: TokenizerConfig, tags: Sequence[str]) -> bytes:
    """Train a model on the text of one corpus, or of several in their shares of the training text.

    Large corpora of several are sampled, and small ones repeated.
    """
    wanted = {name: text.lines for name, text in texts.items()}
    if len(texts) > 1:
        total = min(train_tokenizer.MAX_SENTENCES, sum(wanted.values()))
        wanted = {name: round(share * total) for name, share in shares_of(data, wanted).items()}
    lines = chain.from_iterable(texts[name].take(count) for name, count in wanted.items())
    return train_tokenizer.train(lines, sum(wanted.values()), settings, tags)
