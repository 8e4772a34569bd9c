"""The task of preparation that makes the tokenizer: train it on all corpora, or keep or extend an earlier one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from nmt.compute.processes import run_in_process
from nmt.config.data import DataConfig, TokenizerConfig, is_text
from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.data.corpora import training_splits
from nmt.data.earlier_tokenizer import EarlierTokenizer, check_joint, earlier_tokenizer
from nmt.data.layout import CorpusLayout
from nmt.data.manifest import PreparationTasks
from nmt.data.mixture import shares_of
from nmt.data.records import TOKENIZER_TASK, JsonObject, SampledLines, TrainedTokenizer, collect_task
from nmt.data.tags import tag_ids, tags_of, untagged
from nmt.errors import UserError
from nmt.text import train_tokenizer
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer, trained_file_names

TREE_SYMBOLS = "nmt.parsing.symbols:train_on_files"
LinesOf = Callable[[], Iterable[str]]
"""Returns the lines of a text."""


class Text(NamedTuple):
    """The text of a corpus that a tokenizer is trained on."""

    files: list[Path]
    lines: int
    tag: str
    """The tag at the beginning of some lines, which is not trained on."""
    corpus: str


def tokenizer_settings(config: Config) -> JsonObject:
    """Return the settings on which the tokenizer depends; None equals a missing key."""
    earlier = earlier_tokenizer(config)
    settings = {key: value for key, value in asdict(config.tokenizer).items() if key != "folder"}
    is_kept = earlier is not None and earlier.extend is None
    return {"settings": None if is_kept else settings, "vocabulary": (earlier.vocabulary or None) if earlier else None}


def make_tokenizer(config: Config, tasks: PreparationTasks) -> str:
    """Train the tokenizer, or keep or extend an earlier one."""
    earlier = earlier_tokenizer(config)
    inputs: dict[str, object] = {key: value for key, value in tokenizer_settings(config).items() if value is not None}
    splits = training_splits(config.data)
    pairs = {each.corpus: tasks.manifest.collected(each.name).kept for each in splits}
    if "settings" in inputs:
        texts = [tasks.outputs(collect_task(each.name)) for each in splits]
        inputs["text"] = {name: checksum for files in texts for name, checksum in files.items()}
        if len(splits) > 1:
            inputs["weights"] = shares_of(config.data, pairs)
    if tags := tags_of(splits):
        inputs["tags"] = tags
    joint = config.tokenizer.joint
    checksum, names = _of_earlier(earlier, tasks, joint=joint) if earlier else ("", trained_file_names(joint=joint))
    if checksum:
        inputs["tokenizer"] = checksum
    inputs = _inputs_if_there(tasks, inputs, checksum)
    # weights are settings of training, for which other runs must not lose their tokenizer
    tasks.run(TOKENIZER_TASK, inputs, names, lambda: asdict(_write_tokenizer(config, pairs, earlier)), ["weights"])
    return TOKENIZER_TASK


def _inputs_if_there(tasks: PreparationTasks, inputs: dict[str, object], checksum: str) -> dict[str, object]:
    """Return the recorded inputs, however the tokenizer was made, if it is the one to keep; else the given ones."""
    done = tasks.manifest.tasks.get(TOKENIZER_TASK)
    is_kept = done is not None and "settings" not in inputs and done.inputs.get("tags") == inputs.get("tags")
    return dict(done.inputs) if done and is_kept and tasks.manifest.tokenizer().checksum == checksum else inputs


def _of_earlier(earlier: EarlierTokenizer, tasks: PreparationTasks, *, joint: bool) -> tuple[str, tuple[str, ...]]:
    """Return the checksum and the file names of the tokenizer to keep or extend; once extended, it may be gone."""
    try:
        tokenizer = earlier.load()
    except UserError:
        done = tasks.manifest.tasks.get(TOKENIZER_TASK)
        if done is None or earlier.extend is None or done.inputs.get("vocabulary") != earlier.vocabulary:
            raise
        return str(done.inputs.get("tokenizer")), tuple(done.outputs)
    check_joint(tokenizer, earlier, joint=joint)
    return tokenizer.checksum, tuple(tokenizer.files)


def _write_tokenizer(config: Config, pairs: Mapping[str, int], earlier: EarlierTokenizer | None) -> TrainedTokenizer:
    """Save the tokenizer, given the number of pairs in each corpus."""
    if earlier is None:
        chosen, lines = _trained_tokenizer(config, pairs)
    else:
        chosen, lines = earlier.load(), list[SampledLines]()
        if earlier.extend is not None:
            learned, lines = _trained_tokenizer(config, pairs)
            chosen = earlier.extend(chosen, learned)
    name, more_pieces = (earlier.name, earlier.more_pieces) if earlier else (str(config.data_folder), "")
    tag_ids(chosen, tags_of(training_splits(config.data)), name, more_pieces)
    chosen.save(config.data_folder)
    return TrainedTokenizer(chosen.checksum, chosen.source_size, chosen.target_size, lines)


def _trained_tokenizer(config: Config, pairs: Mapping[str, int]) -> tuple[Tokenizer, list[SampledLines]]:
    """Train one model on both sides, or one per side; trees have a model of their symbols."""
    sides: tuple[list[Text], list[Text]] = ([], [])
    splits = training_splits(config.data)
    for split in splits:
        files = CorpusLayout(config.data_folder).texts(split.name, split.languages)
        for side, file, tag in zip(sides, files, (split.data.tag, ""), strict=True):
            side.append(Text([file], pairs[split.corpus], tag, split.corpus))
    tags = tags_of(splits)
    if config.tokenizer.joint:
        texts = [(_joined(*each)) for each in zip(*sides, strict=True)]
        models = [_trained_model(config, texts, tags)]
    else:
        target = (
            _trained_model(config, sides[1], [])
            if is_text(config.data.target_lang)
            else run_in_process(imported(TREE_SYMBOLS), [file for text in sides[1] for file in text.files])
        )
        models = [_trained_model(config, sides[0], tags), target]
    return Tokenizer(*(model for model, _ in models)), [SampledLines(**asdict(seen)) for _, seen in models]


def _trained_model(config: Config, texts: list[Text], tags: list[str]) -> tuple[bytes, train_tokenizer.LinesSeen]:
    """Train a model in another process, because the trainer uses much memory and cannot be interrupted."""
    return run_in_process(_train_model, texts, config.data, config.tokenizer, tags)


def _joined(source: Text, target: Text) -> Text:
    """Return the text of both sides of a corpus."""
    return Text(source.files + target.files, source.lines + target.lines, source.tag, source.corpus)


def _train_model(
    texts: list[Text], data: DataConfig, settings: TokenizerConfig, tags: list[str]
) -> tuple[bytes, train_tokenizer.LinesSeen]:
    """Train a model on the texts of all corpora, with their weights."""
    sizes = {text.corpus: text.lines for text in texts}
    lines: Iterable[str] = chain.from_iterable(map(_lines, texts))
    total = sum(sizes.values())
    if len(texts) > 1:
        lines_of = {text.corpus: partial(_lines, text) for text in texts}
        lines, total = sample_corpora(data, lines_of, sizes, min(train_tokenizer.MAX_SENTENCES, total))
    return train_tokenizer.train(lines, total, settings, tags)


def _lines(text: Text) -> chain[str]:
    return chain.from_iterable((untagged(line, text.tag) for line in read_lines(file)) for file in text.files)


def sample_corpora(
    data: DataConfig, texts: Mapping[str, LinesOf], sizes: Mapping[str, int], total: int
) -> tuple[Iterator[str], int]:
    """Return about `total` lines of several corpora in their shares of the training text, and their number.

    Large corpora are sampled, and small ones repeated. `sizes` are the numbers of lines of the texts.
    """
    wanted = {name: round(share * total) for name, share in shares_of(data, sizes).items()}
    lines = (_repeated(texts[name], sizes[name], count) for name, count in wanted.items())
    return chain.from_iterable(lines), sum(wanted.values())


def _repeated(lines_of: LinesOf, count: int, wanted: int) -> Iterator[str]:
    """Yield the `count` lines of a text repeatedly, then a random sample for the rest of the wanted number."""
    passes, rest = divmod(wanted, count)
    for _ in range(passes):
        yield from lines_of()
    if rest:
        yield from train_tokenizer.sample(lines_of(), count, rest)
