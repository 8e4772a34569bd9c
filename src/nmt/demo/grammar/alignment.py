"""The true word alignment of a sentence of the demo language.

Words of both languages that express the same element of the sentence have a sure link. A word whose element the other
language does not express, such as the auxiliary of `hat gekauft` for `bought`, has possible links to the words of what
it belongs to. So has each word of a phrase such as `of course`, `natürlich`, which corresponds only as a whole.
"""

from typing import NamedTuple

from nmt.demo.grammar.sentences import Sentence
from nmt.demo.grammar.words import Words
from nmt.text.alignments import GoldAlignment


class _Meaning(NamedTuple):
    """What a word can be linked by."""

    elements: frozenset[str]
    sure: bool
    """Whether the other language expresses one of them, too."""


def true_alignment(sentence: Sentence) -> GoldAlignment:
    """Return the links from the English words of a sentence to the German ones."""
    english, german = sentence.english_words(), sentence.german_words()
    rows, columns = _meanings(english, german), _meanings(german, english)
    links = {
        (i, j): row.sure and column.sure
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
        if row.elements & column.elements
    }
    return GoldAlignment(frozenset(link for link, sure in links.items() if sure), frozenset(links))


def _meanings(words: Words, others: Words) -> list[_Meaning]:
    """Return the meanings of words, given those of the other language."""
    said = {element for word in others for element in word.expresses}
    return [
        _Meaning(frozenset(word.expresses), sure=True)
        if said.intersection(word.expresses)
        else _Meaning(frozenset([word.belongs_to]) - {""}, sure=False)
        for word in words
    ]
