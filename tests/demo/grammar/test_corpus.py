"""The corpus: overlap of its splits, lengths of sentences, and reproducibility."""

import os
import subprocess
import sys
from random import Random

import pytest

from nmt.demo import grammar
from nmt.demo.grammar.discourse import Author
from nmt.demo.grammar.holdout import FRAMES, held_out, is_unseen
from nmt.demo.grammar.lexicon import NOUNS, VERBS

GOLDEN = [
    (
        "The hungry scientist who turned off a big lamp six days ago corrected the important letter thoroughly.",
        "Der hungrige Wissenschaftler, der vor sechs Tagen eine große Lampe ausgeschaltet hat, hat den wichtigen Brief "
        "gründlich korrigiert.",
    ),
    (
        "Because he was ill, Daniel could not send me a letter.",
        "Weil er krank war, konnte Daniel mir keinen Brief schicken.",
    ),
    ("His sister rarely hiked when she was young.", "Seine Schwester ist selten gewandert, als sie jung war."),
    ("When will Robert save money?", "Wann wird Robert Geld sparen?"),
    ("Why did Emma's sister take care of the rose?", "Warum hat sich Emmas Schwester um die Rose gekümmert?"),
    (
        "The musician believes that we did not carry the heavy present because we were very tired.",
        "Der Musiker glaubt, dass wir das schwere Geschenk nicht getragen haben, weil wir sehr müde waren.",
    ),
]
Splits = dict[str, list[tuple[str, str]]]
Written = tuple[str, str, set[tuple[str, str, str]]]
"""A sentence in English and in German, and what it combines."""


@pytest.fixture(scope="module")
def splits() -> Splits:
    return grammar.generate(seed=1, train=6000, valid=100, test=200)


@pytest.fixture(scope="module")
def sentences() -> list[Written]:
    author = Author(Random(5))
    drawn = (author.sentence() for _ in range(10_000))
    return [(each.english(), each.german(), each.pairings()) for each in drawn]


def test_no_sentence_occurs_twice_in_either_language(splits: Splits) -> None:
    pairs = [*splits["train"], *splits["valid"], *splits["test"]]
    assert len({english for english, _ in pairs}) == len(pairs)
    assert len({german for _, german in pairs}) == len(pairs)


def test_sentences_have_3_to_25_words(splits: Splits) -> None:
    lengths = [len(side.split()) for pairs in splits.values() for pair in pairs for side in pair]
    assert min(lengths) >= 3
    assert max(lengths) <= 25
    assert 8 < sum(lengths) / len(lengths) < 13


def test_seed_gives_known_sentences() -> None:
    """A golden sample: after a change of the corpus, read fifty sentences before you update it."""
    assert grammar.generate(seed=7, train=6, valid=0, test=0)["train"] == GOLDEN


def test_text_depends_on_the_seed(splits: Splits) -> None:
    assert grammar.generate(seed=1, train=300, valid=0, test=0)["train"] == splits["train"][:300]
    assert grammar.generate(seed=2, train=300, valid=0, test=0)["train"] != splits["train"][:300]


def test_text_does_not_depend_on_the_hash_seed() -> None:
    code = "from nmt.demo.grammar import generate; print(generate(3, 200, 20, 40))"
    written = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(written) == 1


def test_training_has_no_held_out_combination() -> None:
    known = {}
    author = Author(Random(1))
    for _ in range(3500):
        sentence = author.sentence()
        known[sentence.english()] = sentence.pairings()
    drawn = grammar.generate(seed=1, train=1000, valid=50, test=100)
    shown = set().union(*(known[english] for english, _ in drawn["train"] + drawn["valid"]))
    assert not any(held_out(pairing) for pairing in shown)
    for english, _ in drawn["unseen"]:
        assert known[english] - shown, english


def test_training_has_every_word_and_every_frame(sentences: list[Written]) -> None:
    trained = [pairings for _, _, pairings in sentences if not is_unseen(pairings)]
    shown = set().union(*trained)
    assert {other for kind, _, other in shown if kind == "frame"} >= set(FRAMES)
    verbs = {word for kind, word, _ in shown if kind == "frame"}
    assert verbs >= {verb.name for verb in VERBS}


def test_test_split_uses_only_words_of_training(splits: Splits) -> None:
    for side in (0, 1):
        shown = {word.strip(",.?").lower() for pair in splits["train"] for word in pair[side].split()}
        used = {word.strip(",.?").lower() for pair in splits["valid"] + splits["test"] for word in pair[side].split()}
        assert used <= shown


def test_every_noun_is_used(sentences: list[Written]) -> None:
    text = " ".join(english for english, *_ in sentences)
    assert [noun.english for noun in NOUNS if noun.english not in text and noun.english_plural not in text] == []


def test_equal_english_has_equal_german(sentences: list[Written]) -> None:
    translations: dict[str, str] = {}
    for english, german, _ in sentences:
        assert translations.setdefault(english, german) == german


def test_sentences_are_spelt_correctly(sentences: list[Written]) -> None:
    for english, german, _ in sentences:
        for text in (english, german):
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert not {"  ", " ,", ",,", ",.", " ."} & {text[i : i + 2] for i in range(len(text))}
