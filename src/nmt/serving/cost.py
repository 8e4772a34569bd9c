"""What a request costs, computed before it waits for a model: the text to search, and the size of the answer."""

from collections.abc import Sequence

from nmt.decoding.request import Request
from nmt.serving.requests import Task

SENTENCE_CHARACTERS = 20
"""Characters that each sentence counts in addition, because even an empty one needs some work."""
LONG_WORD, LONG_WORD_FACTOR = 30, 4
"""Words of more characters may have a piece for each of them, instead of one for about four, so they are more work."""
REQUIRED_FACTOR = 8
"""How often characters count that the translation must contain: the search takes a step for each of their pieces, and
the translations of other sentences in the batch have long ended."""
CHOICE_CHARACTERS = 64
"""Characters that each word counts that may come next: the search for it has several hypotheses of several pieces."""
CHOICE_HYPOTHESES = 4
"""The hypotheses in a batch that take as long as the one whose next words are found, which is alone."""
PAIR_CHARACTERS, WORD_CHARACTERS = 8, 50
"""Characters of an answer for the attention of one word to another, and for a word with its probability."""


def cost_of(task: Task, requests: Sequence[Request], hypotheses: int) -> int:
    """Return the cost of a request: characters times hypotheses, and the characters of details in the answer.

    `hypotheses` are those per sentence of the model's own search.
    """
    return sum(_cost_of_sentence(task, request, hypotheses) for request in requests)


def work_of(task: Task, requests: Sequence[Request], hypotheses: int) -> int:
    """Return how much there may be to compute: the cost, but characters of long words count several times."""
    return sum(_cost_of_sentence(task, request, hypotheses, LONG_WORD_FACTOR) for request in requests)


def _cost_of_sentence(task: Task, request: Request, hypotheses: int, long_word_factor: int = 1) -> int:
    required = (request.beginning, *request.terms)
    characters = SENTENCE_CHARACTERS + _characters(request.text, long_word_factor)
    characters += REQUIRED_FACTOR * sum(_characters(each, long_word_factor) for each in required)
    if task.choices:
        return characters * CHOICE_HYPOTHESES + CHOICE_CHARACTERS * task.choices
    cost = characters * max(hypotheses, task.beam or task.nbest)
    if task.details or task.alignments:
        words = len(request.text.split())
        target_words = words + sum(len(each.split()) for each in required)
        cost += task.nbest * target_words * (PAIR_CHARACTERS * words + WORD_CHARACTERS)
    return cost


def _characters(text: str, long_word_factor: int) -> int:
    """Return the characters of a text, those of long words this many times."""
    return len(text) + (long_word_factor - 1) * sum(len(word) for word in text.split() if len(word) > LONG_WORD)
