"""Development and test text that is also in the training text: count it, or drop the training pairs that have it.

Sentences of a language are compared wherever they stand, by 64-bit hashes of their letters (`nmt.text.plain`), and
pairs of two languages in both directions. Runs of words show copies with changes: a training sentence is dropped if it
has a share of the different runs of one sentence. Runs that are in many sentences are phrases of this kind of text, and
are not compared.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt.config.data import SIDE, DataConfig, is_text
from nmt.data.corpora import CorpusSplit
from nmt.data.layout import CorpusLayout
from nmt.data.records import Overlap
from nmt.data.sources.source import Languages, languages
from nmt.data.tags import untagged
from nmt.text.lines import read_lines
from nmt.text.plain import plain, sentence_digest
from nmt.text.words import words_between_spaces

RUN_WORDS = 8
"""The words in a run."""
MAX_SENTENCES = 64
"""The largest number of different sentences with a run that is compared."""
CHUNK_PAIRS = 10_000
"""Pairs between two reports of progress."""
Keeps = Callable[..., bool]
"""Returns whether a training pair is kept, given its source, its target, and what else it has."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What filters know of the development and test text."""

    keys: set[bytes] = field(default_factory=set)
    """Those of all sentences and pairs."""
    runs: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """The numbers of the sentences with each run of a language."""
    needed: list[int] = field(default_factory=list)
    """The number of runs of each sentence that a training sentence must have to be dropped."""


def keys_of(sides: Languages, source: str, target: str) -> tuple[bytes, bytes, bytes]:
    """Return what identifies a source sentence, a target sentence and their pair."""
    first, second = sentence_digest(source) + sides[0].encode(), sentence_digest(target) + sides[1].encode()
    return first, second, min(first, second) + b" " + max(first, second)


def read_splits(folder: Path, splits: Iterable[CorpusSplit]) -> Iterator[tuple[Languages, str, str]]:
    """Yield the languages and both sides of all pairs of prepared splits, without the tags of their corpora."""
    for split in splits:
        sources, targets = map(read_lines, CorpusLayout(folder).texts(split.name, split.languages))
        for source, target in zip(sources, targets, strict=True):
            yield split.languages, untagged(source, split.data.tag), target


def count_overlap(folder: Path, splits: Sequence[CorpusSplit], advance: Callable[[int], None]) -> dict[str, Overlap]:
    """Return for each other split how many of its sentences and pairs the training text holds.

    Only keys of the other splits are in memory. `advance` takes numbers of training pairs that are done.
    """
    others = [split for split in splits if not split.is_training_text]
    keys = {split.name: [keys_of(*pair) for pair in read_splits(folder, [split])] for split in others}
    known = {key for found in keys.values() for pair in found for key in pair}
    seen = set[bytes]()
    training_text = read_splits(folder, [split for split in splits if split.is_training_text])
    for number, pair in enumerate(training_text, 1):
        seen.update(known.intersection(keys_of(*pair)))
        if number % CHUNK_PAIRS == 0:
            advance(CHUNK_PAIRS)
    return {
        name: Overlap(len(found), *(sum(key in seen for key in kind) for kind in zip(*found, strict=True)))
        for name, found in keys.items()
    }


def learn(data: DataConfig, text: Iterable[tuple[Languages, str, str]]) -> HeldOut:
    """Return what the filters that the settings turn on must know of the development and test text."""
    held_out = HeldOut()
    numbers: dict[bytes, int] = {}
    for sides, *pair in text:
        keys = keys_of(sides, *pair)
        if data.drop_overlap:
            held_out.keys.update(keys)
        for language, key, sentence in zip(sides, keys, pair, strict=False):
            if data.overlap_share and key not in numbers:
                numbers[key] = len(numbers)
                for run in runs_of(language, sentence):
                    held_out.runs.setdefault(run, []).append(numbers[key])
    common = [run for run, found in held_out.runs.items() if len(found) > MAX_SENTENCES]
    for run in common:
        del held_out.runs[run]
    counts = Counter(number for found in held_out.runs.values() for number in found)
    shares = (counts[number] * data.overlap_share for number in range(len(numbers)))
    held_out.needed.extend(max(1, math.ceil(share - 1e-9)) for share in shares)
    return held_out


def runs_of(language: str, text: str) -> set[tuple[str, str]]:
    """Return the different runs of words, without case, punctuation and digits, each with its language."""
    found = words_between_spaces(plain(text))
    return {(language, " ".join(found[start : start + RUN_WORDS])) for start in range(len(found) - RUN_WORDS + 1)}


def sentences_differ(data: DataConfig, held_out: HeldOut) -> Keeps:
    """Return a function that drops pairs with whole sentences of development or test text."""
    sides = languages(data)
    # different sentences often have the same tree
    chosen = slice(2, 3) if data.drop_overlap != SIDE else slice(0, 2) if is_text(data.target_lang) else slice(0, 1)
    return lambda source, target, *_: held_out.keys.isdisjoint(keys_of(sides, source, target)[chosen])


def runs_differ(data: DataConfig, held_out: HeldOut) -> Keeps:
    """Return a function that drops pairs with a side that has the runs of a development or test sentence."""
    compared = languages(data) if is_text(data.target_lang) else (data.source_lang,)

    def has_none(language: str, text: str) -> bool:
        runs = runs_of(language, text) & held_out.runs.keys()
        counts = Counter(number for run in runs for number in held_out.runs[run])
        return all(count < held_out.needed[number] for number, count in counts.items())

    return lambda source, target, *_: all(map(has_none, compared, (source, target)))
