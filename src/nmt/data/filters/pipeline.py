"""The filters of text, applied in order, each counted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.config.data import DataConfig
from nmt.data.engine import Engine
from nmt.data.filters import language, overlap_runs, overlap_sentences
from nmt.data.filters.numbers import same_numbers
from nmt.data.filters.parallel import Keeps, ParallelFilter
from nmt.data.filters.web import has_equal_links, is_sentence, share_of_letters
from nmt.data.overlap import HeldOutPair
from nmt.data.sources.source import Pair
from nmt.text.blocks import blocks
from nmt.text.lines import on_one_line
from nmt.text.plain import pair_hashes, sentence_hashes

CHUNK_PAIRS = 50_000
"""Pairs that are read, filtered and written together."""
MAX_CHUNK_CHARACTERS = 1 << 26
"""The largest number of characters in a chunk."""
LEAST_LETTERS = 0.6
"""The least share of letters in a side that the filter of web text keeps: fewer are tables, codes, lists of numbers."""


Digest = Callable[[Sequence[Pair]], npt.NDArray[np.uint64]]
"""Returns a row of numbers for each pair of a chunk."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A rule by which pairs are kept."""

    name: str
    """The name in the manifest and in the tables of counts."""
    setting: str
    """The setting under `data.` that turns the filter on; empty if it is always on, for every split."""
    make: Callable[..., Callable[[Any], Sequence[bool]]]
    """Return the filter's function (`Keeps`), given the settings and, if there is `learn`, what that returns."""
    slow: bool = False
    """Whether processes share the work of the filter, which must then judge each pair independently of the others."""
    digest: Callable[[DataConfig], Digest] | None = None
    """Return a function of each pair alone, given the settings. The filter's function then takes what this one returns,
    in the order of the pairs, and may judge a pair by earlier ones. Processes share the digest of a slow filter."""
    learn: Callable[[DataConfig, Iterable[HeldOutPair]], Any] | None = None
    """Return what the filter must know of the development and test text of all corpora, given the settings and that
    text. It is sent to other processes."""
    known: tuple[Any, ...] = ()
    """What `learn` has returned, once it is known."""

    def knowing(self, config: DataConfig, text: Callable[[], Iterable[HeldOutPair]]) -> "Filter":
        """Return this filter with what it must know of the development and test text."""
        return replace(self, known=(self.learn(config, text()),)) if self.learn else self


def each_pair(keeps: Callable[[str, str], bool]) -> Keeps:
    """Apply a function of source and target to every pair of a chunk."""
    return lambda chunk: [keeps(pair[0], pair[1]) for pair in chunk]


def _within_max_words(config: DataConfig) -> Keeps:
    limit = config.max_words
    return each_pair(lambda source, target: has_at_most(source, limit) and has_at_most(target, limit))


def _with_min_score(config: DataConfig) -> Keeps:
    return lambda chunk: [pair[2] >= config.min_score for pair in chunk]


def _hashing(_: DataConfig) -> Digest:
    return hashes  # processes are sent functions of a module, not lambdas


FILTERS = (
    Filter("empty", "", lambda _: each_pair(lambda source, target: bool(source.strip() and target.strip()))),
    Filter(
        "control characters",
        "",
        lambda _: each_pair(lambda source, target: not (breaks_lines(source) or breaks_lines(target))),
    ),
    Filter("copies", "drop_copies", lambda _: each_pair(lambda source, target: source.strip() != target.strip())),
    Filter("words", "max_words", _within_max_words),
    Filter(
        "ratio",
        "max_ratio",
        lambda config: each_pair(lambda source, target: similar_lengths(source, target, config.max_ratio)),
    ),
    Filter("numbers", "match_numbers", lambda _: each_pair(same_numbers)),
    Filter("overlap", "drop_overlap", overlap_sentences.judging, learn=overlap_sentences.learn),
    Filter(
        "letters",
        "drop_web_text",
        lambda _: each_pair(lambda *sides: min(map(share_of_letters, sides)) >= LEAST_LETTERS),
    ),
    Filter("links", "drop_web_text", lambda _: each_pair(has_equal_links)),
    Filter("boilerplate", "drop_web_text", lambda _: each_pair(is_sentence)),
    Filter("score", "score_column", _with_min_score),
    Filter("duplicates", "deduplicate", lambda _: FirstSeen().keeps, slow=True, digest=_hashing),
    Filter("language", "min_language_probability", language.judging, slow=True),
    Filter(
        "overlap of runs",
        "overlap_share",
        overlap_runs.judging,
        slow=True,
        learn=overlap_runs.learn,
    ),
)
"""All filters in the order in which they are applied: slow ones come last, so that they judge fewer pairs, and
duplicates are dropped after the score is judged, because equal pairs may have different scores."""

RECORDED_WHEN_OFF = ("drop_copies", "max_words", "max_ratio", "deduplicate")
"""Settings of filters that records of preparation have even if they are off, as records of earlier versions do."""

PIECES = ("pieces", "max_pieces")
"""Name and setting of the filter that the encoder applies, because it needs the tokenizer."""


def sentence_filters() -> list[Filter]:
    """Return the filters of held-out text: they drop only pairs that cannot be scored."""
    return [each for each in FILTERS if not each.setting]


def training_filters(config: DataConfig) -> list[Filter]:
    """Return the filters of the training text that the settings turn on, in order."""
    return [each for each in FILTERS if not each.setting or getattr(config, each.setting)]


def filter_settings(config: DataConfig) -> dict[str, object]:
    """Return the settings under `data.` that turn filters on, with their values, as records have them."""
    found: dict[str, object] = {}
    for each in FILTERS:
        value = getattr(config, each.setting) if each.setting else None
        if value or each.setting in RECORDED_WHEN_OFF:
            found[each.setting] = value
    return found


def setting_of(name: str) -> str:
    """Return the setting of a filter; empty if it has none."""
    return {**{each.name: each.setting for each in FILTERS}, PIECES[0]: PIECES[1]}.get(name, "")


class FilterChain:
    """The filters of one split, applied chunk by chunk; `close` it at the end."""

    def __init__(self, filters: Sequence[Filter], config: DataConfig, engine: Engine | None = None) -> None:
        """Start with nothing dropped; an engine's workers share the work, or this process is alone."""
        self._stack = ExitStack()
        self._filters = [(each.name, self._judge(each, config, engine)) for each in filters]
        self.dropped = dict.fromkeys((each.name for each in filters), 0)
        """Pairs that each filter has dropped."""

    def _judge(self, chosen: Filter, config: DataConfig, engine: Engine | None) -> Keeps:
        """Return the function of a filter that this process applies; workers share the work of a slow one."""
        pure: Callable[..., Any] = chosen.digest or chosen.make
        known = () if chosen.digest else chosen.known
        if chosen.slow and engine:
            parallel = self._stack.enter_context(closing(ParallelFilter(pure, config, engine, *known)))
            judge: Callable[[Sequence[Pair]], Any] = parallel.keeps
        else:
            judge = pure(config, *known)
        if chosen.digest is None:
            return judge
        keeps = chosen.make(config, *chosen.known)
        return lambda chunk: keeps(np.asarray(judge(chunk)))

    def apply_all(self, chunks: Iterable[list[Pair]]) -> Iterator[list[Pair]]:
        """Yield the pairs of each chunk that pass all filters."""
        return map(self.apply, chunks)

    def apply(self, chunk: list[Pair]) -> list[Pair]:
        """Return the pairs of a chunk that pass all filters."""
        for name, keeps in self._filters:
            kept = list(compress(chunk, keeps(chunk)))
            self.dropped[name] += len(chunk) - len(kept)
            chunk = kept
        return chunk

    def close(self) -> None:
        """Stop the processes."""
        self._stack.close()


def chunks(pairs: Iterator[Pair], size: int = CHUNK_PAIRS) -> Iterator[list[Pair]]:
    """Group pairs into lists."""
    return blocks(pairs, size, lambda pair: len(pair[0]) + len(pair[1]), MAX_CHUNK_CHARACTERS)


def join_lines(chunk: list[Pair]) -> tuple[list[Pair], int]:
    """Put each sentence on one line; also return how many had line breaks inside, as cells of tables may."""
    broken = sum("\n" in side for pair in chunk for side in pair[:2])
    if not broken:
        return chunk, 0
    return list(map(_on_one_line, chunk)), broken


def _on_one_line(pair: Pair) -> Pair:
    return (on_one_line(pair[0]), on_one_line(pair[1]), *pair[2:])


def breaks_lines(text: str) -> bool:
    """Return whether a text cannot be one line of a text file."""
    return "\n" in text or "\0" in text


def has_at_most(text: str, max_words: int) -> bool:
    """Return whether a text has at most this number of words."""
    return len(text) < 2 * max_words or len(text.split()) <= max_words


def similar_lengths(source: str, target: str, ratio: float) -> bool:
    """Return whether neither side has more than `ratio` times the words of the other."""
    shorter, longer = sorted((len(source.split()), len(target.split())))
    return longer <= ratio * shorter


class FirstSeen:
    """Keeps the first of equal pairs; stores eight bytes per pair, in a few sorted arrays."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._runs: list[npt.NDArray[np.uint64]] = []

    def keeps(self, hashes: npt.NDArray[np.uint64]) -> list[bool]:
        """Return for the hash of each pair whether it is seen for the first time."""
        new, first = np.unique(hashes, return_index=True)
        for run in self._runs:
            nearest = np.minimum(np.searchsorted(run, new), len(run) - 1)
            unseen = run[nearest] != new
            new, first = new[unseen], first[unseen]
        self._remember(new)
        is_first = np.zeros(len(hashes), dtype=bool)
        is_first[first] = True
        return [bool(each) for each in is_first]

    def _remember(self, new: npt.NDArray[np.uint64]) -> None:
        """Add a sorted run of hashes; merge runs of similar size, so that there are few."""
        while self._runs and len(self._runs[-1]) <= 2 * len(new):
            new = np.sort(np.concatenate((self._runs.pop(), new)), kind="stable")
        if len(new):
            self._runs.append(new)


def hashes(chunk: Sequence[Pair]) -> npt.NDArray[np.uint64]:
    """Return a hash of the two sides of each pair."""
    source, target = (sentence_hashes(pair[side] for pair in chunk) for side in (0, 1))
    return pair_hashes(source, target)
