"""The embedded demo corpus: English and German sentences from a grammar, so that nothing needs to be downloaded.

The lexicon knows words and what goes with what; `german` and `english` inflect; `phrases`, `verbgroup`, `clauses` and
`sentences` are the tree of a sentence, each node of which says itself in both languages; `choosing`, `events`, `states`
and `discourse` grow such trees at random; `holdout` says which combinations are kept from training.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

from nmt.grammar.discourse import Author
from nmt.grammar.holdout import is_unseen
from nmt.grammar.lexicon import modifiers
from nmt.grammar.lexicon.entries import Adjective, Adverb, Noun
from nmt.grammar.lexicon.nouns import NOUNS
from nmt.grammar.lexicon.verbs import ALL as VERBS

__all__ = ["fingerprint", "generate", "lemma_counts"]

SHORTEST, LONGEST = 3, 25
"""Words in a sentence of either language."""

ENOUGH_FOR_EVERY_WORD = 5_000
"""A training split of so many pairs shows nearly every word; from there on, the others use only words it shows."""

Pair = tuple[str, str]


def generate(seed: int, train: int, valid: int, test: int) -> dict[str, list[Pair]]:
    """Write so many distinct pairs a split; `unseen` is the half of test that has combinations new to training."""
    stream = _distinct(seed)
    new = test // 2
    drawn: dict[str, list[Pair]] = {"train": _take(stream, train, unseen=False)}
    complete = train >= ENOUGH_FOR_EVERY_WORD
    known = tuple(_vocabulary(drawn["train"], side) for side in (0, 1)) if complete else None
    drawn["valid"] = _take(stream, valid, unseen=False, known=known)
    ordinary = _take(stream, test - new, unseen=False, known=known)
    drawn["unseen"] = _take(stream, new, unseen=True, known=known)
    drawn["test"] = ordinary + drawn["unseen"]
    Random(seed).shuffle(drawn["test"])
    return drawn


def _distinct(seed: int) -> Iterator[tuple[Pair, bool]]:
    """Pairs without end, no sentence of either language twice, and whether each has a held-out combination."""
    author = Author(Random(seed))
    seen: tuple[set[str], set[str]] = set(), set()
    while True:
        sentence = author.sentence()
        pair = sentence.english(), sentence.german()
        fits = all(SHORTEST <= len(side.split()) <= LONGEST for side in pair)
        if fits and pair[0] not in seen[0] and pair[1] not in seen[1]:
            seen[0].add(pair[0])
            seen[1].add(pair[1])
            yield pair, is_unseen(sentence.pairings())


def _take(
    stream: Iterator[tuple[Pair, bool]], count: int, unseen: bool, known: tuple[set[str], ...] | None = None
) -> list[Pair]:
    """The next pairs that are, or are not, unseen, and whose words training has shown."""
    taken: list[Pair] = []
    while len(taken) < count:
        pair, new = next(stream)
        if new is unseen and (known is None or all(_words(pair[side]) <= known[side] for side in (0, 1))):
            taken.append(pair)
    return taken


def _words(sentence: str) -> set[str]:
    return {word.strip(",.?").lower() for word in sentence.split()}


def _vocabulary(pairs: list[Pair], side: int) -> set[str]:
    return set().union(*(_words(pair[side]) for pair in pairs))


def lemma_counts() -> tuple[int, int]:
    """How many lemmas the lexicon has of English and of German, names apart."""
    entries: list[Noun | Adjective | Adverb] = [*NOUNS, *modifiers.ADJECTIVES]
    entries += [*modifiers.MANNER.values(), *modifiers.FREQUENCY, *modifiers.COMMENT, *modifiers.NUMBER]
    english = {entry.english for entry in entries}
    german = {entry.german for entry in entries}
    english |= {" ".join([verb.english[0], verb.particle]).strip() for verb in VERBS}
    german |= {verb.prefix + verb.german[0] for verb in VERBS}
    return len(english), len(german)


def fingerprint() -> str:
    """A checksum of the grammar's source, so that what was made with another grammar is known to be stale."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
