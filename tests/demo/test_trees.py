"""The trees of the demo language's sentences."""

import re
from random import Random

import pytest

from nmt.demo import grammar
from nmt.demo.grammar.discourse import Author
from nmt.demo.trees import sentence_tree
from nmt.parsing.trees import Leaf, Node, Part, bracketed, clean, words

SENTENCES = 3_000


def spelled(tokens: list[str]) -> str:
    """Return the sentence of a treebank's tokens."""
    text = re.sub(r" ([.,?]|'s|')(?= |$)", r"\1", " ".join(tokens))
    return text.replace("can not", "cannot").replace("Can not", "Cannot")


@pytest.mark.parametrize("seed", range(3))
def test_words_of_the_tree_are_those_of_the_sentence(seed: int) -> None:
    author = Author(Random(seed))
    for _ in range(SENTENCES):
        sentence = author.sentence()
        assert spelled(words(sentence_tree(sentence))) == sentence.english()


def test_trees_are_clean_and_every_phrase_has_parts() -> None:
    author = Author(Random(7))

    def check(part: Part) -> None:
        if isinstance(part, Leaf):
            assert part.tag
            assert part.word
        else:
            assert part.children
            assert part.label.isalpha()
            for child in part.children:
                check(child)

    for _ in range(SENTENCES):
        tree = sentence_tree(author.sentence())
        check(tree)
        assert clean(tree) == tree
        assert isinstance(tree, Node)
        assert tree.label in ("S", "SQ", "SBARQ")


GOLDEN = [
    "(S (NP (NP (DT The) (JJ hungry) (NN scientist)) (SBAR (WHNP (WP who)) (S (VP (VBD turned) (PRT (RP off)) (NP "
    "(DT a) (JJ big) (NN lamp)) (ADVP (NP (CD six) (NNS days)) (RB ago)))))) (VP (VBD corrected) (NP (DT the) "
    "(JJ important) (NN letter)) (ADVP (RB thoroughly))) (. .))",
    "(S (SBAR (IN Because) (S (NP (PRP he)) (VP (VBD was) (ADJP (JJ ill))))) (, ,) (NP (NNP Daniel)) (VP (MD could) "
    "(RB not) (VP (VB send) (NP (PRP me)) (NP (DT a) (NN letter)))) (. .))",
    "(S (NP (PRP$ His) (NN sister)) (VP (ADVP (RB rarely)) (VBD hiked) (SBAR (IN when) (S (NP (PRP she)) (VP (VBD was) "
    "(ADJP (JJ young)))))) (. .))",
    "(SBARQ (WHADVP (WRB When)) (SQ (MD will) (NP (NNP Robert)) (VP (VB save) (NP (NN money)))) (. ?))",
    "(SBARQ (WHADVP (WRB Why)) (SQ (VBD did) (NP (NP (NNP Emma) (POS 's)) (NN sister)) (VP (VB take) (NP (NN care)) "
    "(PP (IN of) (NP (DT the) (NN rose))))) (. ?))",
    "(S (NP (DT The) (NN musician)) (VP (VBZ believes) (SBAR (IN that) (S (NP (PRP we)) (VP (VBD did) (RB not) (VP "
    "(VB carry) (NP (DT the) (JJ heavy) (NN present)) (SBAR (IN because) (S (NP (PRP we)) (VP (VBD were) (ADJP "
    "(RB very) (JJ tired)))))))))) (. .))",
]
"""The trees of the first sentences of seed 7, checked by hand."""


def test_first_sentences_have_the_structure_of_the_penn_treebank() -> None:
    sentences = grammar.generate_sentences(seed=7, train=len(GOLDEN), valid=0, test=0)["train"]
    assert [bracketed(sentence_tree(sentence)) for sentence in sentences] == GOLDEN


def test_sentences_of_trees_are_those_of_the_translations() -> None:
    sentences = grammar.generate_sentences(seed=3, train=50, valid=5, test=10)
    pairs = grammar.generate(seed=3, train=50, valid=5, test=10)
    for split, drawn in sentences.items():
        assert [sentence.english() for sentence in drawn] == [source for source, _ in pairs[split]]
