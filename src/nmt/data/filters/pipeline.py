"""The filters of training text: plain functions in one ordered list, each counted.

Processes apply them to chunks of pairs, each pair on its own. Only duplicates depend on earlier pairs, so this process
looks for them, in the order of the text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, tee
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.data import DataConfig
from nmt.data.engine import Engine, map_chunks
from nmt.data.filters import rules
from nmt.data.filters.overlap import HeldOut, Keeps, sentences_differ
from nmt.data.manifest import Manifest, collect_task, encode_task
from nmt.data.sources.source import Pair
from nmt.text.lines import blocks, on_one_line
from nmt.text.plain import Hashes, pair_hashes, sentence_hashes

CHUNK_PAIRS, CHUNK_CHARACTERS = 10_000, 1 << 24
"""The largest numbers of pairs, and about of characters, that are read, filtered and written together."""
PIECES = "pieces"
"""The name of the filter that the encoder applies, because it needs the tokenizer."""


class Filter(NamedTuple):
    """A rule by which pairs are kept."""

    name: str
    """The name in the manifest and in the tables of counts."""
    setting: str
    """The setting under `data.` that turns the filter on; empty if it is always on, for every split."""
    make: Callable[[DataConfig, HeldOut], Keeps] | None = None
    """Return the function that says whether a pair is kept; None for duplicates, which depend on earlier pairs."""
    is_quick: bool = True
    """Whether it takes little time, and needs no other text."""


def _sides(make: Callable[[DataConfig], Callable[[str], bool]]) -> Callable[[DataConfig, HeldOut], Keeps]:
    """Return a `Filter.make` that wants the same of both sides, given one that judges a side."""

    def both(data: DataConfig, _: HeldOut) -> Keeps:
        keeps = make(data)
        return lambda source, target, *_: keeps(source) and keeps(target)

    return both


def _language(data: DataConfig, _: HeldOut) -> Keeps:
    source_fits, target_fits = (
        rules.language_check(language, data.min_language_probability)
        for language in (data.source_lang, data.target_lang)
    )
    return lambda source, target, *_: source_fits(source) and target_fits(target)


FILTERS = (
    Filter("empty", "", _sides(lambda _: lambda side: bool(side.strip()))),
    Filter("control characters", "", _sides(lambda _: lambda side: not breaks_lines(side))),
    Filter("copies", "drop_copies", lambda *_: lambda source, target, *_: source.strip() != target.strip()),
    Filter("words", "max_words", _sides(lambda data: lambda side: has_at_most(side, data.max_words))),
    Filter(
        "ratio",
        "max_ratio",
        lambda data, _: (
            lambda source, target, *_: are_similar(len(source.split()), len(target.split()), data.max_ratio)
        ),
    ),
    Filter("overlap", "drop_overlap", sentences_differ, is_quick=False),
    Filter("duplicates", "deduplicate", None, is_quick=False),
    Filter("language", "min_language_probability", _language, is_quick=False),
)
"""All filters in the order in which they are applied."""
RECORDED_WHEN_OFF = ("drop_copies", "max_words", "max_ratio", "deduplicate")
"""Settings of filters that records of preparation have even if they are off, as records of earlier versions do."""


def filters_of(data: DataConfig, split: str, held_out: Sequence[str] = ()) -> list[Filter]:
    """Return the filters of a split; held-out text loses only pairs that cannot be scored, and other text none."""
    if split == "train":
        return [each for each in FILTERS if not each.setting or getattr(data, each.setting)]
    return [each for each in FILTERS if not each.setting] if split in held_out else []


def filter_settings(data: DataConfig) -> dict[str, object]:
    """Return the settings under `data.` that turn filters on, with their values, as records have them."""
    values = {each.setting: getattr(data, each.setting) for each in FILTERS if each.setting}
    return {name: value for name, value in values.items() if value or name in RECORDED_WHEN_OFF}


def apply(
    filters: Sequence[Filter],
    data: DataConfig,
    chunks: Iterator[list[Pair]],
    dropped: dict[str, int],
    held_out: HeldOut | None = None,
    engine: Engine | None = None,
) -> Iterator[list[Pair]]:
    """Yield the pairs of each chunk that pass all filters; count in `dropped` those that each filter drops.

    An engine's workers share the work, unless all filters are quick; otherwise this process does it.
    """
    dropped.update(dict.fromkeys((each.name for each in filters), 0))
    if not filters:
        yield from chunks
        return
    if all(each.is_quick for each in filters):
        engine = None  # to send the text would take as long
    names = list(dropped)
    in_order = next((number for number, each in enumerate(filters) if each.make is None), None)
    first_seen = FirstSeen()
    chunks, sent = tee(chunks)
    judged = map_chunks(engine, "filters text", sent, judging, data, names, held_out or HeldOut())
    for chunk, (found, hashes) in zip(chunks, judged, strict=True):
        verdicts = found.copy()  # Ray's arrays are read-only
        if in_order is not None:
            candidates = np.flatnonzero(verdicts > in_order)
            verdicts[candidates[~first_seen.are_new(hashes)]] = in_order
        for name, count in zip(names, np.bincount(verdicts, minlength=len(names)).tolist(), strict=False):
            dropped[name] += count
        yield list(compress(chunk, (verdicts == len(names)).tolist()))


Verdicts = tuple[npt.NDArray[np.intp], Hashes]
"""For each pair of a chunk, the number of the filter that drops it, or how many filters there are; and hashes of the
pairs that no filter before that of duplicates drops."""


def judging(data: DataConfig, names: Sequence[str], held_out: HeldOut) -> Callable[[list[Pair]], Verdicts]:
    """Return the function that judges the pairs of a chunk by the named filters, except for duplicates."""
    chosen = [each for each in FILTERS if each.name in names]
    functions = [(number, each.make(data, held_out)) for number, each in enumerate(chosen) if each.make]
    in_order = next((number for number, each in enumerate(chosen) if each.make is None), len(chosen))

    def verdict(pair: Pair) -> int:
        for number, keeps in functions:
            if not keeps(*pair):
                return number
        return len(chosen)

    def judge(chunk: list[Pair]) -> Verdicts:
        verdicts = np.fromiter(map(verdict, chunk), np.intp, len(chunk))
        return verdicts, pair_digests(list(compress(chunk, (verdicts > in_order).tolist())))

    return judge


def read_chunks(pairs: Iterator[Pair], size: int = CHUNK_PAIRS) -> Iterator[tuple[list[Pair], int]]:
    """Group pairs into lists, with each sentence on one line; also yield how many had line breaks, as cells may."""
    for chunk in blocks(pairs, size, lambda pair: len(pair[0]) + len(pair[1]), CHUNK_CHARACTERS):
        broken = sum("\n" in side for pair in chunk for side in pair[:2])
        yield [(*map(on_one_line, pair[:2]), *pair[2:]) for pair in chunk] if broken else chunk, broken


def breaks_lines(text: str) -> bool:
    """Return whether a text cannot be one line of a text file."""
    return "\n" in text or "\0" in text


def has_at_most(text: str, max_words: int) -> bool:
    """Return whether a text has at most this number of words."""
    return len(text) < 2 * max_words or len(text.split()) <= max_words


def are_similar(source: int, target: int, ratio: float) -> bool:
    """Return whether neither length is more than `ratio` times the other."""
    return max(source, target) <= ratio * min(source, target)


class FirstSeen:
    """Finds the first of equal pairs; stores eight bytes per pair, in a few sorted arrays."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._runs: list[Hashes] = []

    def are_new(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return for the hash of each pair whether it is seen for the first time."""
        new, first = np.unique(hashes, return_index=True)
        for run in self._runs:
            unseen = run[np.minimum(np.searchsorted(run, new), len(run) - 1)] != new
            new, first = new[unseen], first[unseen]
        self._remember(new)
        is_first = np.zeros(len(hashes), dtype=bool)
        is_first[first] = True
        return is_first

    def _remember(self, new: Hashes) -> None:
        """Add a sorted run of hashes; merge runs of similar size, so that there are few."""
        while self._runs and len(self._runs[-1]) <= 2 * len(new):
            new = np.sort(np.concatenate((self._runs.pop(), new)), kind="stable")
        if len(new):
            self._runs.append(new)


def pair_digests(chunk: Sequence[Pair]) -> Hashes:
    """Return a hash of the two sides of each pair."""
    source, target = (sentence_hashes(pair[side] for pair in chunk) for side in (0, 1))
    return pair_hashes(source, target)


class FilterCount(NamedTuple):
    """The pairs that a filter dropped and those that it left."""

    name: str
    limit: str
    """The filter's setting and its value; empty if the filter has no limit."""
    dropped: int
    left: int
    share: float
    """Pairs left, relative to the pairs read."""


def filter_counts(manifest: Manifest, split: str = "train") -> list[FilterCount]:
    """Return the pairs read, then the counts of each filter in order; the tokenizer's own limit comes last."""
    collected, encoded = manifest.collected(split), manifest.encoded(split)
    recorded = manifest.tasks[collect_task(split)].inputs.get("filters")
    limits = dict(recorded) if isinstance(recorded, Mapping) else {}
    limits["max_pieces"] = manifest.tasks[encode_task(split)].inputs["max_pieces"]
    settings = {each.name: each.setting for each in FILTERS} | {PIECES: "max_pieces"}
    left = collected.read
    counts = [FilterCount("read", "", 0, left, 1.0)]
    for name, dropped in {**collected.dropped, **encoded.dropped}.items():
        setting = settings.get(name, "")
        limit = limits.get(setting, False)
        left -= dropped
        shown = "" if isinstance(limit, bool) else f"data.{setting}={limit}"
        counts.append(FilterCount(name, shown, dropped, left, left / max(collected.read, 1)))
    return counts
