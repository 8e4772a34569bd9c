"""The corpus of the demo: its splits, and what every sentence must satisfy."""

import os
import subprocess
import sys
from random import Random

import pytest

from nmt.demo.author import Author
from nmt.demo.grammar import Sentence
from nmt.demo.source import draw, held_out
from nmt.demo.words import words
from nmt.parsing.trees import Leaf, Part, clean, leaves

Splits = dict[str, list[Sentence]]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return draw(seed=1, train=4000, valid=100, test=200)


def test_no_sentence_occurs_twice_in_either_language(splits: Splits) -> None:
    pairs = [each.pair for split in ("train", "valid", "test") for each in splits[split]]
    assert len({english for english, _ in pairs}) == len({german for _, german in pairs}) == len(pairs) == 4300
    assert set(splits["unseen"]) <= set(splits["test"])


def test_text_depends_on_the_seed_alone(splits: Splits) -> None:
    assert [each.pair for each in draw(1, 50, 0, 0)["train"]] == [each.pair for each in splits["train"][:50]]
    assert draw(2, 1, 0, 0)["train"][0].pair != splits["train"][0].pair
    code = "from nmt.demo.source import draw; print([each.pair for each in draw(3, 50, 5, 10)['test']])"
    written = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(written) == 1


def test_training_lacks_the_combinations_of_unseen(splits: Splits) -> None:
    shown = {found for split in ("train", "valid") for each in splits[split] for found in each.combinations}
    assert not any(map(held_out, shown))
    assert all(each.combinations - shown for each in splits["unseen"])


def test_training_has_every_word_of_the_table(splits: Splits) -> None:
    shown = {word.strip(",.?").lower() for each in splits["train"] for side in each.pair for word in side.split()}
    for kind in ["noun", "name", "adjective", "verb"]:
        assert not {entry.english[0].partition("~")[0].lower() for entry in words(kind)} - shown
    for kind in ["time", "adverb", "question", "conjunction", "complement", "link"]:
        assert not {word.lower() for entry in words(kind) for word in entry.german} - shown


def test_trees_and_alignments_cover_every_word(splits: Splits) -> None:
    def check(part: Part) -> None:
        assert part.word if isinstance(part, Leaf) else (part.children and part.label.isalpha())
        for child in () if isinstance(part, Leaf) else part.children:
            check(child)

    for sentence in splits["train"]:
        tree = sentence.tree()
        check(tree)
        assert clean(tree) == tree
        tokens = [leaf.word for leaf in leaves(tree)]
        assert " ".join(tokens).replace(" ,", ",").replace(" .", ".").replace(" ?", "?") == sentence.pair[0]
        links = sentence.alignment()
        for side, text in enumerate(sentence.pair):
            assert {link[side] for link in links.possible} == set(range(len(text.split()))), text
        assert links.sure <= links.possible


def test_equal_english_has_equal_german() -> None:
    author, translations = Author(Random(5)), dict[str, str]()
    for english, german in (author.sentence().pair for _ in range(2000)):
        assert translations.setdefault(english, german) == german
