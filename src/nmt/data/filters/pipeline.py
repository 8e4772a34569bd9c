"""The filters of training text: plain functions in one order, each counted.

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
from nmt.data.filters.overlap import HeldOut, Keeps, sentences_differ
from nmt.data.manifest import Collected, Manifest, collect_task, encode_task
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.text.language import identified_code, language_identifier
from nmt.text.lines import blocks, on_one_line
from nmt.text.plain import Hashes, pair_hashes

CHUNK_PAIRS, CHUNK_CHARACTERS = 10_000, 1 << 24
"""The largest numbers of pairs, and about of characters, that are read, filtered and written together."""
PIECES = "pieces"
"""The name of the filter that the encoder applies, because it needs the tokenizer."""
DUPLICATES = "duplicates"
"""The one filter that depends on earlier pairs."""
FILTERS = {
    "empty": "",
    "control characters": "",
    "copies": "drop_copies",
    "words": "max_words",
    "ratio": "max_ratio",
    "overlap": "drop_overlap",
    DUPLICATES: "deduplicate",
    "language": "min_language_probability",
}
"""All filters in the order in which they are applied, each with the setting under `data.` that turns it on; those
without one are always on."""
QUICK = ("empty", "control characters", "copies", "words", "ratio")
"""Filters that take little time, and need no other text."""
RECORDED_WHEN_OFF = ("drop_copies", "max_words", "max_ratio", "deduplicate")
"""Settings of filters that records of preparation have even if they are off, as records of earlier versions do."""


def filters_of(data: DataConfig, split: str, held_out: Sequence[str] = ()) -> list[str]:
    """Return the filters of a split; held-out text loses only pairs that cannot be scored, and other text none."""
    if split == "train":
        return [name for name, setting in FILTERS.items() if not setting or getattr(data, setting)]
    return [name for name, setting in FILTERS.items() if not setting] if split in held_out else []


def filter_settings(data: DataConfig) -> dict[str, object]:
    """Return the settings under `data.` that turn filters on, with their values, as records have them."""
    values = {setting: getattr(data, setting) for setting in FILTERS.values() if setting}
    return {name: value for name, value in values.items() if value or name in RECORDED_WHEN_OFF}


def apply(
    filters: Sequence[str],
    data: DataConfig,
    pairs: Iterator[Pair],
    counts: Collected,
    held_out: HeldOut | None = None,
    engine: Engine = Engine(),  # noqa: B008 (it does not change)
) -> Iterator[list[Pair]]:
    """Yield chunks of the pairs that pass all filters; count pairs in `counts` as they are read, dropped and kept.

    The engine's workers share the work, unless all filters are quick.
    """
    counts.dropped.update(dict.fromkeys(filters, 0))
    if {*filters} <= {*QUICK}:
        engine = Engine()  # to send the text would take as long
    in_order = filters.index(DUPLICATES) if DUPLICATES in filters else None
    first_seen = FirstSeen()
    chunks, sent = tee(_chunks(pairs, counts))
    judged = map_chunks(engine, "filters text", sent, judging, filters, data, held_out or HeldOut())
    for chunk, (found, hashes) in zip(chunks, judged, strict=True):
        verdicts = found.copy()  # Ray's arrays are read-only
        if in_order is not None:
            candidates = np.flatnonzero(verdicts > in_order)
            verdicts[candidates[~first_seen.are_new(hashes)]] = in_order
        for name, count in zip(filters, np.bincount(verdicts, minlength=len(filters)).tolist(), strict=False):
            counts.dropped[name] += count
        kept = list(compress(chunk, (verdicts == len(filters)).tolist()))
        counts.kept += len(kept)
        yield kept


def _chunks(pairs: Iterator[Pair], counts: Collected) -> Iterator[list[Pair]]:
    """Group pairs into lists, with each sentence on one line; cells of tables may have line breaks."""
    for chunk in blocks(pairs, CHUNK_PAIRS, lambda pair: len(pair[0]) + len(pair[1]), CHUNK_CHARACTERS):
        counts.read += len(chunk)
        broken = any("\n" in side for pair in chunk for side in pair[:2])
        yield [(*map(on_one_line, pair[:2]), *pair[2:]) for pair in chunk] if broken else chunk


Verdicts = tuple[npt.NDArray[np.intp], Hashes]
"""For each pair of a chunk, the number of the filter that drops it, or how many filters there are; and hashes of the
pairs that no filter before that of duplicates drops."""


def judging(filters: Sequence[str], data: DataConfig, held_out: HeldOut) -> Callable[[list[Pair]], Verdicts]:
    """Return the function that judges the pairs of a chunk by filters, except for duplicates."""
    known = _functions(data, held_out)
    functions = [(place, known[name]) for place, name in enumerate(filters) if name in known]
    in_order = filters.index(DUPLICATES) if DUPLICATES in filters else len(filters)

    def verdict(pair: Pair) -> int:
        for place, keeps in functions:
            if not keeps(pair[0], pair[1]):
                return place
        return len(filters)

    def judge(chunk: list[Pair]) -> Verdicts:
        verdicts = np.fromiter(map(verdict, chunk), np.intp, len(chunk))
        candidates = list(compress(chunk, (verdicts > in_order).tolist()))
        return verdicts, pair_hashes(candidates)

    return judge


def _functions(data: DataConfig, held_out: HeldOut) -> dict[str, Keeps]:
    """Return the functions of all filters by name, without those that the settings turn off and duplicates."""
    words, ratio = data.max_words, data.max_ratio
    found: dict[str, Keeps] = {
        "empty": lambda source, target: bool(source.strip() and target.strip()),
        "control characters": lambda source, target: "\0" not in source and "\0" not in target,
        "copies": lambda source, target: source.strip() != target.strip(),
        "words": lambda source, target: _has_at_most(source, words) and _has_at_most(target, words),
        "ratio": lambda source, target: _are_similar(len(source.split()), len(target.split()), ratio),
        "overlap": sentences_differ(data, held_out),
    }
    if data.min_language_probability:
        is_source, is_target = (_language_check(each, data) for each in data.languages)
        found["language"] = lambda source, target: is_source(source) and is_target(target)
    return found


def _has_at_most(text: str, max_words: int) -> bool:
    return len(text) < 2 * max_words or len(text.split()) <= max_words


def _are_similar(source: int, target: int, ratio: float) -> bool:
    return max(source, target) <= ratio * min(source, target)


def _language_check(language: str, data: DataConfig) -> Callable[[str], bool]:
    """Return a function that says whether a text has a language with the least probability that the settings ask."""
    code, classifier = identified_code(language), language_identifier()
    if code not in classifier.labels:
        known = ", ".join(sorted(classifier.labels))
        raise UserError(f"data.min_language_probability cannot check {language}: py3langid knows {known}")

    def has_language(text: str) -> bool:
        likeliest, probability = classifier.classify(text)
        if likeliest != code:  # ranking all languages takes longer
            probability = dict(classifier.rank(text))[code]
        return bool(probability >= data.min_language_probability)

    return has_language


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
        while self._runs and len(self._runs[-1]) <= 2 * len(new):  # merge runs of similar size, so that there are few
            new = np.sort(np.concatenate((self._runs.pop(), new)), kind="stable")
        if len(new):
            self._runs.append(new)
        is_first = np.zeros(len(hashes), dtype=bool)
        is_first[first] = True
        return is_first


class FilterCount(NamedTuple):
    """The pairs that a filter dropped and those that it left."""

    name: str
    limit: str
    """The filter's setting and its value; empty if the filter has no limit."""
    dropped: int
    left: int


def filter_counts(manifest: Manifest, split: str = "train") -> list[FilterCount]:
    """Return the pairs read, then the counts of each filter in order; the tokenizer's own limit comes last."""
    collected, encoded = manifest.collected(split), manifest.encoded(split)
    recorded = manifest.tasks[collect_task(split)].inputs.get("filters")
    limits = dict(recorded) if isinstance(recorded, Mapping) else {}
    limits["max_pieces"] = manifest.tasks[encode_task(split)].inputs["max_pieces"]
    counts = [FilterCount("read", "", 0, collected.read)]
    for name, dropped in {**collected.dropped, **encoded.dropped}.items():
        setting = "max_pieces" if name == PIECES else FILTERS.get(name, "")
        limit = limits.get(setting, False)
        shown = "" if isinstance(limit, bool) else f"data.{setting}={limit}"
        counts.append(FilterCount(name, shown, dropped, counts[-1].left - dropped))
    return counts
