"""The search that is restricted to trees, compared with all trees that there are."""

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import NextTokenScorer
from nmt.decoding.sampling import sample
from nmt.errors import UserError
from nmt.parsing.constraint import TreeSymbols, only_trees
from nmt.parsing.linearise import parse_line
from tests.unit.decoding.toys import search_with

VOCABULARY = ["<unk>", "<pad>", "<s>", "</s>", "▁(A", "▁(B", "▁)A", "▁)B", "▁.", "▁XX", "▁(C"]
"""C can be opened and never closed."""
CPU = torch.device("cpu")


def random_scorer(seed: int) -> NextTokenScorer:
    generator = torch.Generator().manual_seed(seed)

    def scorer(tokens: Tensor, parents: Tensor) -> Tensor:
        return torch.randn(len(tokens), len(VOCABULARY), generator=generator)

    return scorer


def restricted(words: Sequence[int], limits: Sequence[int], seed: int = 0) -> tuple[NextTokenScorer, Tensor]:
    max_lengths = torch.tensor(limits)
    symbols = TreeSymbols.of(VOCABULARY, CPU)
    return only_trees(random_scorer(seed), symbols, torch.tensor(words), max_lengths), max_lengths


def line(tokens: Sequence[int]) -> str:
    return " ".join(VOCABULARY[token].removeprefix("▁") for token in tokens)


def is_tree(text: str, words: int) -> bool:
    return parse_line(text, ["word"] * words) is not None


def test_wide_beam_finds_exactly_the_trees_that_there_are() -> None:
    words, limit = 2, 7
    scorer, max_lengths = restricted([words], [limit])
    (found,) = search_with(scorer, max_lengths, beam=400, alpha=0.3, nbest=400, stop_early=False)
    symbols = ["(A", "(B", ")A", ")B", ".", "XX"]
    lines = (" ".join(each) for length in range(1, limit) for each in product(symbols, repeat=length))
    assert sorted(line(each.tokens) for each in found) == sorted(text for text in lines if is_tree(text, words))


@pytest.mark.parametrize("seed", range(5))
def test_every_hypothesis_of_a_search_is_a_tree_over_the_words(seed: int) -> None:
    words, limits = [1, 3, 12, 30], [4, 30, 15, 80]
    scorer, max_lengths = restricted(words, limits, seed)
    found = search_with(scorer, max_lengths, beam=8, alpha=0.3, nbest=8)
    for count, limit, hypotheses in zip(words, limits, found, strict=True):
        assert hypotheses
        for each in hypotheses:
            assert is_tree(line(each.tokens), count)
            assert len(each.tokens) < limit


@pytest.mark.parametrize("seed", range(5))
def test_every_sample_is_a_tree_over_the_words(seed: int) -> None:
    words = [1, 3, 12]
    scorer, max_lengths = restricted([count for count in words for _ in range(4)], [20] * 12, seed)
    generator = torch.Generator().manual_seed(seed)
    found = sample(scorer, max_lengths.tolist(), DecodingConfig(strategy="sample", nbest=4), generator)
    for count, hypotheses in zip(words, found, strict=True):
        assert all(is_tree(line(each.tokens), count) for each in hypotheses)


def test_deep_trees_are_closed_within_the_limit() -> None:
    words, limit = 2, 120

    def opens_always(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = torch.zeros(len(tokens), len(VOCABULARY))
        scores[:, VOCABULARY.index("▁(A")] = 100
        return scores

    max_lengths = torch.tensor([limit])
    scorer = only_trees(opens_always, TreeSymbols.of(VOCABULARY, CPU), torch.tensor([words]), max_lengths)
    ((best,),) = search_with(scorer, max_lengths, beam=1, alpha=0.0)
    assert is_tree(line(best.tokens), words)
    assert len(best.tokens) == limit - 2  # EOS, and a bracket more would need two symbols


def test_sentence_whose_limit_is_too_short_is_searched_without_restriction() -> None:
    scorer, max_lengths = restricted([5], [6])
    plain = search_with(random_scorer(0), max_lengths, beam=3, alpha=0.3)
    assert search_with(scorer, max_lengths, beam=3, alpha=0.3) == plain


@pytest.mark.parametrize("pieces", [["▁the", "▁("], ["▁the", "▁", "▁(", "▁)"]])
def test_vocabulary_of_text_is_refused(pieces: list[str]) -> None:
    with pytest.raises(UserError, match="needs a model of trees"):
        TreeSymbols.of(["<unk>", "<pad>", "<s>", "</s>", *pieces], CPU)


def test_plain_brackets_and_empty_symbols_are_neither_brackets_of_a_tree_nor_words() -> None:
    symbols = TreeSymbols.of([*VOCABULARY, "▁(", "▁)", "▁"], CPU)
    for kind in (symbols.opening, symbols.closing, symbols.words):
        assert not kind[-3:].any()
