"""Noise that changes the text of pairs: their case, and typos."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nmt.data.batches import IntArray
from nmt.data.noise.draws import uniform
from nmt.data.noise.sentences import Flags, NoisyPairs, Sentences
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer

Change = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class CaseNoise:
    """Writes a share of pairs in upper case, and another share in title case, on both sides."""

    tokenizer: Tokenizer
    upper: float
    title: float

    def __call__(self, pairs: NoisyPairs) -> NoisyPairs:
        """Return the pairs, some of them in another case."""
        draws = uniform(pairs.draws.keys("case"), np.zeros(len(pairs.source.lengths), np.int64))
        for change, low, high in ((str.upper, 0.0, self.upper), (title_case, self.upper, self.upper + self.title)):
            pairs = self._changed(pairs, np.flatnonzero((low <= draws) & (draws < high)), change)
        return pairs

    def _changed(self, pairs: NoisyPairs, chosen: IntArray, change: Change) -> NoisyPairs:
        tokenizer, source, target = self.tokenizer, pairs.source.lists(), pairs.target.lists()
        for number in chosen.tolist():
            (source[number],) = tokenizer.encode_source([change(tokenizer.decode_source(source[number]))])
            (target[number],) = tokenizer.encode_target([change(tokenizer.decode(target[number]))])
        return replace(pairs, source=Sentences.of(source), target=Sentences.of(target)) if len(chosen) else pairs


@dataclass(frozen=True, slots=True)
class Typos:
    """Gives a share of the source words a typo."""

    tokenizer: Tokenizer
    share: float

    def __call__(self, pairs: NoisyPairs) -> NoisyPairs:
        """Return the pairs, some of them with typos in the source."""
        ids = pairs.source.lists()
        words = [self.tokenizer.decode_source(sentence).split(" ") for sentence in ids]
        counts = np.array([len(each) for each in words])
        owners = np.repeat(np.arange(len(words)), counts)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        keys = pairs.draws.keys("typos")[owners]
        has_typo, kinds, letters = (uniform(keys, 3 * places + index) for index in range(3))
        changed = set()
        for index in np.flatnonzero(has_typo < self.share).tolist():
            owner, place = int(owners[index]), int(places[index])
            words[owner][place] = with_typo(words[owner][place], float(kinds[index]), float(letters[index]))
            changed.add(owner)
        for owner in changed:
            (ids[owner],) = self.tokenizer.encode_source([" ".join(words[owner])])
        return replace(pairs, source=Sentences.of(ids)) if changed else pairs


def title_case(text: str) -> str:
    """Return a text with the first letter of each word in upper case."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def with_typo(word: str, kind: float, letter: float) -> str:
    """Return a word with a letter left out or doubled, or two swapped; a single letter stays.

    Args:
        word: The word.
        kind: A number below 1 that chooses which of the three.
        letter: A number below 1 that chooses the place.
    """
    if len(word) < 2:
        return word
    place = int(letter * (len(word) - 1))
    first, second = word[place], word[place + 1]
    return word[:place] + _CHANGES[int(kind * len(_CHANGES))](first, second) + word[place + 2 :]


_CHANGES: Sequence[Callable[[str, str], str]] = (
    lambda _, second: second,
    lambda first, second: first + first + second,
    lambda first, second: second + first,
)
"""What may happen to two letters."""


def has_unknown(pairs: NoisyPairs) -> Flags:
    """Return for each pair whether a side has unknown pieces, whose text is lost."""
    return pairs.source.contain(UNK) | pairs.target.contain(UNK)
