"""What a request costs, computed before it waits for a model: the text to search, and the size of the answer."""

from collections.abc import Sequence

from nmt.decoding.request import Request
from nmt.features.serving.requests import Task

USUAL_HYPOTHESES = 4
"""Hypotheses per sentence of a model whose own number is not known."""
SENTENCE_CHARACTERS = 20
"""Characters that each sentence counts in addition, because even an empty one needs some work."""
LONG_WORD, LONG_WORD_FACTOR = 30, 4
"""Words of more characters may have a piece for each of them, instead of one for about four, so they are more work."""
CHOICE_CHARACTERS = 64
"""Characters that each word counts that may come next: the search for it has several hypotheses of several pieces."""
PAIR_CHARACTERS, WORD_CHARACTERS = 8, 50
"""Characters of an answer for the attention of one word to another, and for a word with its probability."""


def cost_of(task: Task, requests: Sequence[Request]) -> int:
    """Return the cost of a request: characters times hypotheses, and the characters of details in the answer."""
    return sum(_cost_of_sentence(task, request) for request in requests)


def work_of(task: Task, requests: Sequence[Request]) -> int:
    """Return how much there may be to compute: the cost, of which characters of long words are a multiple."""
    return sum(round(_cost_of_sentence(task, request) * _share_of_pieces(request)) for request in requests)


def _share_of_pieces(request: Request) -> float:
    """Return how many times as many pieces a sentence may have as its characters say."""
    words = (word for text in _texts(request) for word in text.split())
    in_long_words = sum(len(word) for word in words if len(word) > LONG_WORD)
    return 1 + (LONG_WORD_FACTOR - 1) * in_long_words / _characters(request)


def _characters(request: Request) -> int:
    return SENTENCE_CHARACTERS + sum(map(len, _texts(request)))


def _texts(request: Request) -> tuple[str, ...]:
    """Return what makes the search longer: the sentence, and what its translation must contain."""
    return request.text, request.beginning, *request.terms


def _cost_of_sentence(task: Task, request: Request) -> int:
    characters = _characters(request)
    if task.choices:
        return characters + CHOICE_CHARACTERS * task.choices
    cost = characters * (task.beam or max(USUAL_HYPOTHESES, task.nbest))
    if task.details or task.options:
        words = len(request.text.split())
        cost += task.nbest * words * (PAIR_CHARACTERS * words + WORD_CHARACTERS)
    return cost
