"""The next words compared with a list of all words of a toy language."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.next_words import MAX_PIECES, likely_words, next_words
from nmt.decoding.torch_engine import TorchEngine
from nmt.text.special import EOS
from nmt.text.tokenizer import SPACE_MARK
from tests.unit.decoding.toys import Toy, ToyScorer
from tests.unit.small_models import LINES, make_model, make_tokenizer

BEGINS, GOES_ON = (4, 5), (6,)
"""The tokens that begin a word and those that continue it."""
LONGEST = 7


def begins_word() -> Tensor:
    return torch.tensor([token in BEGINS for token in range(7)])


def all_words(toy: Toy, prefix: tuple[int, ...]) -> list[tuple[tuple[int, ...], float]]:
    """Return every word after a prefix with its probability, most probable first."""
    found = []
    for length in range(LONGEST):
        for tokens in product(BEGINS, *[GOES_ON] * length):
            total = sum(toy.log_probability(prefix + tokens[:place], token) for place, token in enumerate(tokens))
            end = sum(math.exp(toy.log_probability(prefix + tokens, token)) for token in (*BEGINS, EOS))
            found.append((tokens, math.exp(total) * end))
    return sorted(found, key=lambda word: -word[1])


@pytest.mark.parametrize("prefix", [(), (4,), (4, 6, 5, 5)])
@pytest.mark.parametrize("count", [1, 3])
def test_words_are_the_most_probable_of_all_words(prefix: tuple[int, ...], count: int) -> None:
    for seed in range(10):
        found = next_words(ToyScorer([Toy(seed)]), prefix, begins_word(), count)
        expected = all_words(Toy(seed), prefix)[:count]
        assert [tuple(word.tokens) for word in found] == [tokens for tokens, _ in expected]
        probabilities = [math.exp(word.log_probability) for word in found]
        assert probabilities == pytest.approx([probability for _, probability in expected], rel=1e-4)


@pytest.mark.parametrize("positions", [1, 2, 8, MAX_PIECES, MAX_PIECES + 4])
def test_no_beginning_is_too_long_for_learned_positions(positions: int) -> None:
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, positions="learned", max_positions=positions)
    engine = TorchEngine([model], tokenizer, DecodingConfig(), torch.device("cpu"))
    assert bool(likely_words(engine, "a", " ".join(LINES), 5)) == (positions > 1)


def test_a_space_alone_is_no_word() -> None:
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, output_bias=True)
    with torch.no_grad():
        model.get_parameter("vectors.bias")[tokenizer.target_ids([SPACE_MARK])] += 5
    engine = TorchEngine([model], tokenizer, DecodingConfig(), torch.device("cpu"))
    found = likely_words(engine, "a", "", 5)
    assert found
    assert all(word.text for word in found)
