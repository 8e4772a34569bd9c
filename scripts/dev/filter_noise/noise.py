"""Pairs with known kinds of noise, as text from the web has them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from nmt.data.sources.source import Pair

CLEAN = "clean"
Sides = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of noise."""

    name: str
    make: Callable[[Sides, Sides, Random], Sides]
    """Return a bad pair, given a good one and another good one."""
    repeats: bool = False
    """Whether the bad pair is bad only because it comes after the good one."""
    of_test_set: bool = False
    """Whether it is made of a pair of the test set instead of a clean one."""


def _one_word_changed(pair: Sides, other: Sides, random: Random) -> Sides:
    """Return a pair with a number before it, or with a word of another pair on each side."""
    if random.random() < 0.5:
        number = random.randrange(1, 1000)
        return f"{number}. {pair[0]}", f"{number}. {pair[1]}"
    changed = [side.split() for side in pair]
    for words, from_other in zip(changed, other, strict=True):
        words[random.randrange(len(words))] = random.choice(from_other.split())
    return " ".join(changed[0]), " ".join(changed[1])


def _web(pair: Sides, _: Sides, random: Random) -> Sides:
    """Return a pair as a menu, with a link on one side, or as a notice."""
    source, target = pair
    menu = " | ".join(source.split()), " | ".join(target.split())
    linked = f"{source} https://www.example.org/{random.randrange(10**6)}", target
    return random.choice((menu, linked, (f"Click here: {source}", f"Hier klicken: {target}")))


def _test_pair(pair: Sides, other: Sides, random: Random) -> Sides:
    """Return a pair of the test set in other letters, with another word on each side, or followed by another pair."""
    upper = pair[0].upper(), pair[1].upper()
    longer = f"{pair[0]} {other[0]}", f"{pair[1]} {other[1]}"
    changed = [side.split() for side in pair]
    for words, from_other in zip(changed, other, strict=True):
        words[random.randrange(len(words))] = random.choice(from_other.split())
    return random.choice((upper, longer, (" ".join(changed[0]), " ".join(changed[1]))))


def _truncated(pair: Sides, *_: object) -> Sides:
    words = pair[1].split()
    return pair[0], " ".join(words[: max(1, len(words) // 3)])


KINDS = (
    Kind("misaligned", lambda pair, other, _: (pair[0], other[1])),
    Kind("untranslated", lambda pair, *_: (pair[0], pair[0])),
    Kind("swapped sides", lambda pair, *_: (pair[1], pair[0])),
    Kind("cut short", _truncated),
    Kind("repeated", lambda pair, *_: pair, repeats=True),
    Kind("nearly repeated", _one_word_changed, repeats=True),
    Kind("web page", _web),
    Kind("test set", _test_pair, of_test_set=True),
)


def with_noise(clean: Sequence[Sides], test: Sequence[Sides], share: float, seed: int) -> Iterator[Pair]:
    """Yield clean and bad pairs in random order, each with the name of its kind as a third value.

    Args:
        clean: Good pairs.
        test: Other good pairs, which are a test set.
        share: The share of bad pairs in the result, the same for each kind.
        seed: The seed of all that is random.
    """
    random = Random(seed)
    places = [random.random() for _ in clean]
    found = [(place, (*pair, CLEAN)) for place, pair in zip(places, clean, strict=True)]
    for number in range(round(len(clean) * share / (1 - share))):
        kind, other = KINDS[number % len(KINDS)], clean[random.randrange(len(clean))]
        chosen = random.randrange(len(test if kind.of_test_set else clean))
        place = random.uniform(places[chosen], 1) if kind.repeats else random.random()
        pair = (test if kind.of_test_set else clean)[chosen]
        found.append((place, (*kind.make(pair, other, random), kind.name)))
    found.sort(key=lambda each: each[0])
    return (pair for _, pair in found)
