"""The embedded demo corpus: English and German sentences from a grammar, which need no download.

`lexicon` reads the tables of words and of which of them combine. `german` and `english` inflect words. `phrases`,
`verbgroup`, `clauses` and `sentences` are the nodes of a sentence's tree; each renders itself in both languages, in
`words` that know what they express, so that `alignment` can link them. `modes` lists what is decided about a clause
before its words. `choosing`, `things`, `events`, `states`, `questions`, `reasons` and `discourse` build random trees:
each extends the class of the one before, and the last is `Author`. `holdout` decides which combinations are kept out of
the training text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from nmt.demo.grammar.alignment import true_alignment
from nmt.demo.grammar.discourse import Author
from nmt.demo.grammar.holdout import is_unseen
from nmt.demo.grammar.sentences import Sentence
from nmt.text.alignments import GoldAlignment

__all__ = ["draw", "generate", "generate_sentences"]

MIN_WORDS, MAX_WORDS = 3, 25
"""Words in a sentence, in each language."""

PAIRS_WITH_NEARLY_ALL_WORDS = 5_000
"""Training splits of at least this size have nearly all words; then the other splits use only words of training."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A random sentence."""

    sentence: Sentence
    pair: Pair
    """The sentence in both languages."""
    unseen: bool
    """Whether it has a held-out combination."""

    @property
    def alignment(self) -> GoldAlignment:
        """The true links from English to German words."""
        return true_alignment(self.sentence)


def generate(seed: int, train: int, valid: int, test: int) -> dict[str, list[Pair]]:
    """Generate distinct pairs per split; `unseen` is the half of test with combinations that training lacks."""
    return {split: [each.pair for each in drawn] for split, drawn in draw(seed, train, valid, test).items()}


def generate_sentences(seed: int, train: int, valid: int, test: int) -> dict[str, list[Sentence]]:
    """Generate the sentences of `generate`, before they are put into words."""
    return {split: [each.sentence for each in drawn] for split, drawn in draw(seed, train, valid, test).items()}


def draw(seed: int, train: int, valid: int, test: int) -> dict[str, list[Drawn]]:
    """Draw the sentences of `generate`."""
    stream = _distinct(seed)
    unseen = test // 2
    drawn = {"train": _take(stream, train, unseen=False)}
    complete = train >= PAIRS_WITH_NEARLY_ALL_WORDS
    known = tuple(_vocabulary(drawn["train"], side) for side in (0, 1)) if complete else None
    drawn["valid"] = _take(stream, valid, unseen=False, known=known)
    ordinary = _take(stream, test - unseen, unseen=False, known=known)
    drawn["unseen"] = _take(stream, unseen, unseen=True, known=known)
    drawn["test"] = ordinary + drawn["unseen"]
    Random(seed).shuffle(drawn["test"])
    return drawn


def _distinct(seed: int) -> Iterator[Drawn]:
    """Yield distinct sentences without end."""
    author = Author(Random(seed))
    seen: tuple[set[str], set[str]] = set(), set()
    while True:
        sentence = author.sentence()
        pair = sentence.english(), sentence.german()
        is_short = all(MIN_WORDS <= len(side.split()) <= MAX_WORDS for side in pair)
        if is_short and pair[0] not in seen[0] and pair[1] not in seen[1]:
            seen[0].add(pair[0])
            seen[1].add(pair[1])
            yield Drawn(sentence, pair, is_unseen(sentence.pairings()))


def _take(stream: Iterator[Drawn], count: int, unseen: bool, known: tuple[set[str], ...] | None = None) -> list[Drawn]:
    """Return the next sentences that are, or are not, unseen and, if `known` is given, use only known words."""
    taken: list[Drawn] = []
    while len(taken) < count:
        each = next(stream)
        if each.unseen is unseen and (known is None or all(_words(each.pair[side]) <= known[side] for side in (0, 1))):
            taken.append(each)
    return taken


def _words(sentence: str) -> set[str]:
    return {word.strip(",.?").lower() for word in sentence.split()}


def _vocabulary(drawn: list[Drawn], side: int) -> set[str]:
    return set().union(*(_words(each.pair[side]) for each in drawn))
