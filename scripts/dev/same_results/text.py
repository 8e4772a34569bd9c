"""Small generated text: pairs of sentences with their word alignments and trees, the same in every run."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

NOUNS = {"man": "Mann", "king": "Koenig", "stone": "Stein", "tree": "Baum", "dog": "Hund", "letter": "Brief",
         "table": "Tisch", "garden": "Garten"}  # fmt: skip
ADJECTIVES = {"old": "alten", "young": "jungen", "red": "roten", "green": "gruenen", "small": "kleinen"}
VERBS = {"sees": "gesehen", "finds": "gefunden", "paints": "gemalt", "sells": "verkauft", "seeks": "gesucht"}
NEW_NOUNS = {"engine": "Motor", "wheel": "Reifen", "driver": "Fahrer", "lorry": "Lastwagen", "road": "Weg"}
"""Nouns of the text on which a model of the other text is fine-tuned."""


class Sentence(NamedTuple):
    """A sentence with its translation."""

    source: str
    target: str
    links: str
    """The word alignment in Pharaoh format."""
    tree: str
    """The constituency tree of the source."""


def sentences(count: int, seed: int, nouns: dict[str, str] = NOUNS) -> list[Sentence]:
    """Return different sentences of a grammar whose target puts the verb last."""
    draws = random.Random(seed)
    found: dict[str, Sentence] = {}
    while len(found) < count:
        adjectives = [draws.choice([*ADJECTIVES, ""]) for _ in range(2)]
        made = _sentence(adjectives, draws.choices(list(nouns), k=2), draws.choice(list(VERBS)), nouns)
        found[made.source] = made
    return list(found.values())


def _sentence(adjectives: Sequence[str], chosen: Sequence[str], verb: str, nouns: dict[str, str]) -> Sentence:
    first, second = (
        [("DT", "the"), *([("JJ", adjective)] if adjective else []), ("NN", noun)]
        for adjective, noun in zip(adjectives, chosen, strict=True)
    )
    source = [word for _, word in (*first, ("VBZ", verb), *second, (".", "."))]
    target = ["den", *source[1 : len(first)], "hat", "den", *source[len(first) + 2 : -1], verb, "."]
    words = {**nouns, **ADJECTIVES, **VERBS}
    places = [*range(len(first)), len(source) - 1, *range(len(first) + 1, len(source) - 1), len(source)]
    phrases = [f"(NP {' '.join(f'({tag} {word})' for tag, word in phrase)})" for phrase in (first, second)]
    return Sentence(
        " ".join(source),
        " ".join(words.get(word, word) for word in target),
        " ".join(f"{number}-{place}" for number, place in enumerate(places)),
        f"(S {phrases[0]} (VP (VBZ {verb}) {phrases[1]}) (. .))",
    )


def write_text(folder: Path) -> None:
    """Write the text of all cases."""
    folder.mkdir()
    made = sentences(620, seed=1)
    for name, part in (("test", made[:8]), ("valid", made[8:20]), ("train", made[20:420]), ("more", made[420:])):
        _write(folder, name, part)
    _write(folder, "fine", sentences(150, seed=2, nouns=NEW_NOUNS))
    shouted = [each._replace(source=each.source.upper(), target=each.target.upper()) for each in made[420:440]]
    _write(folder, "shouted", shouted)
    tested = made[:8]
    files = {
        "terms.tsv": ["the\tdas", "old\turalten", "dog\tKoeter"],
        "beginnings.de": [" ".join(each.target.split()[: number % 3]) for number, each in enumerate(tested)],
        "scored.tsv": [f"{each.source}\t{each.target}" for each in tested],
        "tagged.en": [f"{'@more@' if number % 2 else '@plain@'} {each.source}" for number, each in enumerate(tested)],
        "one_column.tsv": [tested[0].source],
    }
    for name, lines in files.items():
        _write_lines(folder / name, lines)


def _write(folder: Path, name: str, part: Sequence[Sentence]) -> None:
    for ending, lines in zip(("en", "de", "links", "mrg"), zip(*part, strict=True), strict=True):
        _write_lines(folder / f"{name}.{ending}", lines)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
