"""The task of preparation that makes the tokenizer: train it on all corpora, or keep or extend an earlier one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from nmt.compute.processes import run_in_process
from nmt.config.data import DataConfig, TokenizerConfig, is_text
from nmt.config.folders import expanded
from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.data.corpora import training_splits
from nmt.data.layout import CorpusLayout
from nmt.data.manifest import PreparationTasks
from nmt.data.mixture import shares_of
from nmt.data.records import TOKENIZER_TASK, SampledLines, TrainedTokenizer, collect_task
from nmt.data.tags import tag_ids, tags_of, untagged
from nmt.errors import UserError
from nmt.text import train_tokenizer
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer, trained_file_names

TREE_SYMBOLS = "nmt.parsing.symbols:train_on_files"


class EarlierTokenizer(NamedTuple):
    """A tokenizer that exists before the corpus is prepared, and how preparation uses it."""

    name: str
    """What messages call its place."""
    kept_from: str
    """The setting that names this place, in words."""
    folder: Callable[[], Path]
    """Find its folder; raise a UserError if that is gone."""
    remedy: str
    """What to do if it cannot be loaded."""
    instead: str
    """The setting with which a new tokenizer is trained instead."""
    more_pieces: str
    """The settings with which the tokenizer has other pieces, in words."""
    vocabulary: str = ""
    """The value of training.init_vocabulary if it is that of the model to begin from."""

    @property
    def is_extended(self) -> bool:
        """Whether it gets pieces that are learned from the text."""
        return self.vocabulary == "extend"

    def load(self) -> Tokenizer:
        """Load the tokenizer."""
        return Tokenizer.load(self.folder(), self.remedy)


def earlier_tokenizer(config: Config) -> EarlierTokenizer | None:
    """Return the tokenizer that the settings name to keep or extend; None if they train a new one."""
    if folder := config.tokenizer.folder:
        anew = "tokenizer.folder=''"
        return EarlierTokenizer(
            folder, "tokenizer.folder", lambda: expanded(folder), f"restore it, or set {anew}", anew, anew
        )
    if not config.training.uses_old_vocabulary:
        return None
    return EarlierTokenizer(
        config.training.init_from,
        "the model of training.init_from",
        lambda: Path(imported("nmt.runs.origin:tokenizer_folder")(config)),  # runs import data
        "restore it, or begin with another checkpoint",
        "training.init_vocabulary=new",
        "training.init_vocabulary=extend or new",
        config.training.init_vocabulary,
    )


def tokenizer_settings(config: Config) -> dict[str, object]:
    """Return the settings on which the tokenizer depends; None equals a missing key."""
    earlier = earlier_tokenizer(config)
    settings = {key: value for key, value in asdict(config.tokenizer).items() if key != "folder"}
    is_kept = earlier is not None and not earlier.is_extended
    return {"settings": None if is_kept else settings, "vocabulary": (earlier.vocabulary or None) if earlier else None}


def make_tokenizer(config: Config, tasks: PreparationTasks) -> None:
    """Train the tokenizer, or keep or extend an earlier one."""
    earlier, splits, manifest = earlier_tokenizer(config), training_splits(config.data), tasks.manifest
    inputs = {key: value for key, value in tokenizer_settings(config).items() if value is not None}
    pairs = {each.corpus: manifest.collected(each.name).kept for each in splits}
    if "settings" in inputs:
        inputs["text"] = dict(file for each in splits for file in manifest.outputs(collect_task(each.name)).items())
        if len(splits) > 1:
            inputs["weights"] = shares_of(config.data, pairs)
    if tags := tags_of(splits):
        inputs["tags"] = tags
    names = trained_file_names(joint=config.tokenizer.joint)
    if earlier:
        inputs["tokenizer"], names = _of_earlier(earlier, tasks, joint=config.tokenizer.joint)
    done = manifest.tasks.get(TOKENIZER_TASK)
    is_kept = done is not None and "settings" not in inputs and done.inputs.get("tags") == inputs.get("tags")
    if done and is_kept and manifest.tokenizer().checksum == inputs["tokenizer"]:
        inputs = done.inputs  # however the tokenizer was made, it is the one to keep
    # weights are settings of training, for which other runs must not lose their tokenizer
    tasks.run(TOKENIZER_TASK, inputs, names, lambda: _write_tokenizer(config, pairs, earlier), ["weights"])


def _of_earlier(earlier: EarlierTokenizer, tasks: PreparationTasks, *, joint: bool) -> tuple[str, tuple[str, ...]]:
    """Return the checksum and the file names of the tokenizer to keep or extend; once extended, it may be gone."""
    try:
        tokenizer = earlier.load()
    except UserError:
        done = tasks.manifest.tasks.get(TOKENIZER_TASK)
        if done is None or not earlier.is_extended or done.inputs.get("vocabulary") != earlier.vocabulary:
            raise
        return str(done.inputs.get("tokenizer")), tuple(done.outputs)
    if tokenizer.joint != joint:
        raise UserError(
            f"the tokenizer of {earlier.name} has "
            f"{'one vocabulary' if tokenizer.joint else 'a vocabulary per language'}, but "
            f"tokenizer.joint={str(joint).lower()}: set tokenizer.joint={str(tokenizer.joint).lower()}, "
            f"or {earlier.instead}"
        )
    return tokenizer.checksum, tuple(tokenizer.files)


def _write_tokenizer(config: Config, pairs: Mapping[str, int], earlier: EarlierTokenizer | None) -> TrainedTokenizer:
    """Save the tokenizer, given the number of pairs in each corpus."""
    lines: list[SampledLines] = []
    if earlier is None:
        chosen, lines = _train(config, pairs)
    else:
        chosen = earlier.load()
    if earlier and earlier.is_extended:
        from nmt.text.extend_tokenizer import extend  # noqa: PLC0415 - few runs need it

        learned, lines = _train(config, pairs)
        chosen = extend(chosen, learned, config.tokenizer.vocab_size, earlier.name)
    name, more_pieces = (earlier.name, earlier.more_pieces) if earlier else (str(config.data_folder), "")
    tag_ids(chosen, tags_of(training_splits(config.data)), name, more_pieces)
    chosen.save(config.data_folder)
    return TrainedTokenizer(chosen.checksum, chosen.source_size, chosen.target_size, lines)


class Text(NamedTuple):
    """The text of a corpus that a tokenizer is trained on."""

    files: list[Path]
    lines: int
    tag: str
    """The tag at the beginning of some lines, which is not trained on."""

    def read(self) -> Iterator[str]:
        """Yield the lines of all files."""
        return chain.from_iterable((untagged(line, self.tag) for line in read_lines(file)) for file in self.files)


def _train(config: Config, pairs: Mapping[str, int]) -> tuple[Tokenizer, list[SampledLines]]:
    """Train one model on both sides, or one per side; trees have a model of their symbols.

    Each is trained in another process, because the trainer uses much memory and cannot be interrupted.
    """
    splits, layout = training_splits(config.data), CorpusLayout(config.data_folder)

    def texts(*sides: int) -> dict[str, Text]:
        found = {each.corpus: (layout.texts(each.name, each.languages), each.data.tag) for each in splits}
        return {
            corpus: Text([files[side] for side in sides], len(sides) * pairs[corpus], tag)
            for corpus, (files, tag) in found.items()
        }

    def train(*sides: int) -> tuple[bytes, train_tokenizer.LinesSeen]:
        tags = tags_of(splits) if 0 in sides else []
        return run_in_process(_train_model, texts(*sides), config.data, config.tokenizer, tags)

    if config.tokenizer.joint:
        models = [train(0, 1)]
    elif is_text(config.data.target_lang):
        models = [train(0), train(1)]
    else:
        files = [file for text in texts(1).values() for file in text.files]
        models = [train(0), run_in_process(imported(TREE_SYMBOLS), files)]
    return Tokenizer(*(model for model, _ in models)), [SampledLines(**asdict(seen)) for _, seen in models]


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
