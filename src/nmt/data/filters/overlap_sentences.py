"""The filter that drops training pairs whose sides are whole sentences of development or test text."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.config.data import SIDE, DataConfig, is_text
from nmt.data.filters.parallel import Keeps
from nmt.data.overlap import HeldOutPair, together
from nmt.data.sources.source import Languages, Pair, languages
from nmt.text.plain import Hashes, sentence_digest, sentence_hashes

Key = TypeVar("Key")


class KnownSentences(NamedTuple):
    """Sorted hashes of the development and test text, as many as it has sentences."""

    by_language: Mapping[str, Hashes]
    pairs: Mapping[Languages, Hashes]
    """Those of the pairs, by their languages in alphabetical order."""


def learn(_: DataConfig, text: Iterable[HeldOutPair]) -> KnownSentences:
    """Return the hashes of development and test text."""
    digests: defaultdict[Languages, tuple[bytearray, bytearray]] = defaultdict(lambda: (bytearray(), bytearray()))
    for pair in text:
        sources, targets = digests[pair.languages]
        sources += sentence_digest(pair.source)
        targets += sentence_digest(pair.target)
    by_language: defaultdict[str, list[Hashes]] = defaultdict(list)
    pairs: defaultdict[Languages, list[Hashes]] = defaultdict(list)
    for sides, found in digests.items():
        hashes = [np.frombuffer(bytes(each), np.uint64) for each in found]
        for language, each in zip(sides, hashes, strict=True):
            by_language[language].append(each)
        key, hashes_of_pairs = together(sides, *hashes)
        pairs[key].append(hashes_of_pairs)
    return KnownSentences(_sorted(by_language), _sorted(pairs))


def _sorted(found: Mapping[Key, list[Hashes]]) -> dict[Key, Hashes]:
    return {key: np.unique(np.concatenate(each)) for key, each in found.items()}


def judging(config: DataConfig, known: KnownSentences) -> Keeps:
    """Return the function that judges pairs by the known sentences of their languages."""
    sides, by_side = languages(config), config.drop_overlap == SIDE
    compared = [0, 1] if is_text(config.target_lang) else [0]  # different sentences often have the same tree
    nothing = np.zeros(0, np.uint64)

    def keeps(chunk: Sequence[Pair]) -> list[bool]:
        hashes = [sentence_hashes(pair[side] for pair in chunk) for side in (0, 1)]
        dropped: npt.NDArray[np.bool_] = np.zeros(len(chunk), dtype=bool)
        if by_side:
            for side in compared:
                dropped |= are_in(hashes[side], known.by_language.get(sides[side], nothing))
        else:
            key, hashes_of_pairs = together(sides, hashes[0], hashes[1])
            dropped |= are_in(hashes_of_pairs, known.pairs.get(key, nothing))
        return [not each for each in dropped.tolist()]

    return keeps


def are_in(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is one of the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(hashes), dtype=bool)
    nearest = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.asarray(known[nearest] == hashes)
