"""Phrases of the demo language: each rule builds one in English, as a tree, and in German, word by word.

Words of the two languages that mean the same share an element, so the word alignment of a sentence follows from its
derivation, as its tree and its translation do.
"""

from dataclasses import dataclass, replace
from functools import cache

from nmt.demo.words import (
    CONTRACTIONS,
    PLURAL,
    Case,
    Entry,
    adjective_form,
    determiner_form,
    german_noun,
)
from nmt.parsing.trees import Leaf, Node, leaves, parse_trees, with_leaves


@dataclass(frozen=True, slots=True)
class Token(Leaf):
    """A word of either language; German ones have a tag only if they are punctuation."""

    means: tuple[object, ...] = ()
    """The elements of the sentence that it expresses."""
    of: object = None
    """The element to which it belongs, if the other language expresses none of its own."""


Words = tuple[Token, ...]
COMMA = Token(",", ",")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase in both languages."""

    english: Node
    german: Words
    person: int = 3
    plural: bool = False
    light: bool = False
    """Whether it is a pronoun."""
    definite: bool = True
    relative: Words = ()
    """Its relative clause in German, which can stand apart from it."""

    @property
    def asks(self) -> bool:
        """Whether it is a question word or a relative pronoun."""
        return self.english.label.startswith("WH")


def both(tag: str, english: str, german: str, of: object = None) -> tuple[Token, Token]:
    """Return a word in both languages, which express the same."""
    element = object()
    return Token(tag, english, (element,), of), Token("", german, (element,), of)


def word_phrase(label: str, tag: str, english: str, german: str) -> Phrase:
    """Return a phrase of one word: a name, a question word, a relative pronoun."""
    word, german_word = both(tag, english, german)
    return Phrase(Node(label, (word,)), (german_word,))


def pronoun(entry: Entry, case: Case) -> Phrase:
    """Return a personal pronoun."""
    english = entry.english[0 if case is Case.NOMINATIVE else 1]
    person, number, *_ = entry.uses
    phrase = word_phrase("NP", "PRP", english, entry.german[case])
    return replace(phrase, person=int(person), plural=number == "plural", light=True)


@cache
def _tree(text: str) -> Node:
    ((_, tree),) = parse_trees([text], "words.tsv")
    return tree


def fixed(entry: Entry) -> Phrase:
    """Return a phrase that the table has as a whole; if it has as many words in each language, they correspond."""
    tree, whole = _tree(*entry.english), object()
    english = list(leaves(tree))
    pairwise = len(english) == len(entry.german)

    def token(leaf: Leaf, place: int) -> Token:
        return Token(leaf.tag, leaf.word, ((whole, place),) if pairwise else (), whole)

    german = tuple(token(Leaf("", word), place) for place, word in enumerate(entry.german))
    return Phrase(with_leaves(tree, [token(leaf, place) for place, leaf in enumerate(english)]), german)


def noun_phrase(
    noun: Entry,
    determiner: Entry | None,
    plural: bool,
    case: Case,
    adjective: Entry | None = None,
    negation: object = None,
) -> Phrase:
    """Return a noun with what stands before it; `negation` is the element that kein expresses besides its own."""
    gender = PLURAL if plural else noun.german[0]
    pairs = [both("NNS" if plural else "NN", noun.english[plural], german_noun(noun, gender, case))]
    (head,) = pairs[0][0].means
    if adjective:
        pairs.insert(0, both("JJ", adjective.english[0], adjective_form(adjective, determiner, gender, case), head))
    if determiner:
        english = determiner.english[plural]
        if english == "a" and pairs[0][0].word.startswith(tuple("aeiou")):
            english = "an"
        word, german = both(determiner.uses[0], english, determiner_form(determiner, gender, case), head)
        pairs.insert(0, (word, replace(german, means=(*german.means, negation)) if negation else german))
    tree = Node("NP", tuple(english for english, _ in pairs))
    definite = determiner is not None and "definite" in determiner.uses
    return Phrase(tree, tuple(german for _, german in pairs), plural=plural, definite=definite)


def described(adjective: Entry, very: bool) -> Phrase:
    """Return an adjective as a predicate."""
    word = both("JJ", adjective.english[0], adjective.german[0])
    pairs = [both("RB", "very", "sehr", word[0].means[0]), word] if very else [word]
    return Phrase(Node("ADJP", tuple(english for english, _ in pairs)), tuple(german for _, german in pairs))


def prepositional(english: str, german: str, phrase: Phrase) -> Phrase:
    """Return a phrase after a preposition; `-` stands for none in German."""
    word, german_word = both("TO" if english == "to" else "IN", english, german, phrase.german[-1].means[0])
    first, *others = phrase.german
    tree = Node("PP", (word, phrase.english))
    if german == "-":
        return replace(phrase, english=tree)
    if contracted := CONTRACTIONS.get(f"{german} {first.word}"):
        return replace(
            phrase, english=tree, german=(replace(first, word=contracted, means=word.means + first.means), *others)
        )
    return replace(phrase, english=tree, german=(german_word, first, *others))
