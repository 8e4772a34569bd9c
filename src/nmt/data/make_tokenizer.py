"""The task of preparation that makes the tokenizer: train it on all corpora, or keep or extend an earlier one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


class EarlierTokenizer(NamedTuple):
    """A tokenizer that exists before the corpus is prepared, to keep or to extend."""

    setting: str
    """The setting that names its folder, or the model that it belongs to."""
    name: str
    """The value of this setting."""
    instead: str
    """The setting with which a new tokenizer is trained instead."""
    is_extended: bool = False
    """Whether it gets pieces that are learned from the text."""

    def load(self, config: Config) -> Tokenizer:
        """Load the tokenizer."""
        of_model = self.setting != "tokenizer.folder"
        # runs import data
        folder = imported("nmt.runs.origin:tokenizer_folder")(config) if of_model else expanded(self.name)
        return Tokenizer.load(folder)


def earlier_tokenizer(config: Config) -> EarlierTokenizer | None:
    """Return the tokenizer that the settings name to keep or extend; None if they train a new one."""
    if folder := config.tokenizer.folder:
        return EarlierTokenizer("tokenizer.folder", folder, "tokenizer.folder=''")
    if not config.training.uses_old_vocabulary:
        return None
    is_extended = config.training.init_vocabulary == "extend"
    return EarlierTokenizer(
        "training.init_from", config.training.init_from, "training.init_vocabulary=new", is_extended
    )


def tokenizer_task(config: Config, manifest: Manifest, *, checking: bool = False) -> Task:
    """Return the task that makes the tokenizer; when `checking`, an earlier tokenizer may be gone."""
    earlier, splits, done = earlier_tokenizer(config), training_splits(config.data), manifest.tasks.get(TOKENIZER_TASK)
    is_trained = earlier is None or earlier.is_extended
    text = {name: sum_ for each in splits for name, sum_ in manifest.outputs(collect_task(each.name)).items()}
    inputs: dict[str, object] = {
        "tokenizer": None,
        "settings": {name: getattr(config.tokenizer, name) for name in TRAINING_SETTINGS} if is_trained else None,
        "text": text if is_trained else None,
        "tags": tags_of(splits) or None,
    }
    names: Iterable[str] = trained_file_names(joint=config.tokenizer.joint)
    if earlier:
        tokenizer = _load(earlier, config, checking=checking)
        if tokenizer:
            inputs["tokenizer"], names = tokenizer.checksum, tokenizer.files
        is_same = done and inputs["tokenizer"] in (None, manifest.tokenizer().checksum)
        if done and is_same and not is_trained and done.inputs.get("tags") == inputs["tags"]:
            # however the tokenizer was made, it is the one to keep
            inputs = done.inputs if tokenizer else done.inputs | {"tokenizer": None}
    outside = {"tokenizer": ["tokenizer.folder"]} if earlier else {}
    return Task(TOKENIZER_TASK, inputs, list(names), lambda: _make(config, manifest, earlier), outside)


def _load(earlier: EarlierTokenizer, config: Config, *, checking: bool) -> Tokenizer | None:
    """Load a tokenizer to keep or extend, which must have as many vocabularies as the settings ask for."""
    try:
        tokenizer = earlier.load(config)
    except UserError:
        if checking:
            return None
        raise
    joint = config.tokenizer.joint
    if tokenizer.joint != joint and not checking:
        raise UserError(
            f"the tokenizer of {earlier.setting}={earlier.name} has "
            f"{'one vocabulary' if tokenizer.joint else 'a vocabulary per language'}, but "
            f"tokenizer.joint={str(joint).lower()}: set tokenizer.joint={str(tokenizer.joint).lower()}, "
            f"or {earlier.instead}"
        )
    return tokenizer


def _make(config: Config, manifest: Manifest, earlier: EarlierTokenizer | None) -> TrainedTokenizer:
    """Save the tokenizer."""
    lines: list[train_tokenizer.LinesSeen] = []
    if earlier is None:
        tokenizer, lines = _train(config, manifest)
    else:
        tokenizer = earlier.load(config)
    if earlier and earlier.is_extended:
        from nmt.text.extend_tokenizer import extend  # noqa: PLC0415 - few runs need it

        learned, lines = _train(config, manifest)
        tokenizer = extend(tokenizer, learned, config.tokenizer.vocab_size, earlier.name)
    if earlier:
        for tag in tags_of(training_splits(config.data)):
            found = tokenizer.encode_source([tag])[0]
            if len(found) != 1 or found == [UNK]:
                raise UserError(
                    f"the tokenizer of {earlier.name} has no piece for the tag {tag}: take one of its own tags, or set "
                    f"{earlier.instead}"
                )
    tokenizer.save(config.data_folder)
    return TrainedTokenizer(tokenizer.checksum, tokenizer.source_size, tokenizer.target_size, lines)


class Text(NamedTuple):
    """The text of a corpus that a tokenizer is trained on."""

    files: list[Path]
    lines: int
    tag: str
    """The tag at the beginning of some lines, which is not trained on."""

    def read(self) -> Iterator[str]:
        """Yield the lines of all files."""
        return chain.from_iterable((untagged(line, self.tag) for line in read_lines(file)) for file in self.files)


def _train(config: Config, manifest: Manifest) -> tuple[Tokenizer, list[train_tokenizer.LinesSeen]]:
    """Train one model on both sides, or one per side; trees have a model of their symbols.

    Each is trained in another process, because the trainer uses much memory and cannot be interrupted.
    """
    splits = training_splits(config.data)

    def train(*sides: int) -> tuple[bytes, train_tokenizer.LinesSeen]:
        texts = {}
        for each in splits:
            files = [config.data_folder / each.texts[side] for side in sides]
            texts[each.corpus] = Text(files, len(files) * manifest.collected(each.name).kept, each.data.tag)
        if sides == (1,) and not is_text(config.data.target_lang):
            return run_in_process(_train_on_trees, [file for text in texts.values() for file in text.files])
        return run_in_process(_train_model, texts, config.data, config.tokenizer, tags_of(splits) if 0 in sides else [])

    models, lines = zip(*([train(0, 1)] if config.tokenizer.joint else [train(0), train(1)]), strict=True)
    return Tokenizer(*models), list(lines)


def _train_on_trees(files: Sequence[Path]) -> tuple[bytes, train_tokenizer.LinesSeen]:
    found: tuple[bytes, train_tokenizer.LinesSeen] = imported("nmt.parsing.symbols:train_on_files")(files)
    return found


def _train_model(
    texts: Mapping[str, Text], data: DataConfig, settings: TokenizerConfig, tags: Sequence[str]
) -> tuple[bytes, train_tokenizer.LinesSeen]:
    """Train a model on the texts of all corpora, with their weights."""
    sizes = {name: text.lines for name, text in texts.items()}
    lines: Iterable[str] = chain.from_iterable(text.read() for text in texts.values())
    total = sum(sizes.values())
    if len(texts) > 1:
        readers = {name: text.read for name, text in texts.items()}
        lines, total = sample_corpora(data, readers, sizes, min(train_tokenizer.MAX_SENTENCES, total))
    return train_tokenizer.train(lines, total, settings, tags)


def sample_corpora(
    data: DataConfig, texts: Mapping[str, Callable[[], Iterable[str]]], sizes: Mapping[str, int], total: int
) -> tuple[Iterator[str], int]:
    """Return about `total` lines of several corpora in their shares of the training text, and their number.

    Large corpora are sampled, and small ones repeated. `sizes` are the numbers of lines of the texts.
    """
    wanted = {name: round(share * total) for name, share in shares_of(data, sizes).items()}

    def repeated(name: str) -> Iterator[str]:
        """Yield all lines repeatedly, then a random sample for the rest of the wanted number."""
        passes, rest = divmod(wanted[name], sizes[name])
        for _ in range(passes):
            yield from texts[name]()
        yield from train_tokenizer.sample(texts[name](), sizes[name], rest) if rest else ()

    return chain.from_iterable(map(repeated, wanted)), sum(wanted.values())
