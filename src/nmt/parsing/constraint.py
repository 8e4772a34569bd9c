"""Restrict a search to well-formed trees over the words of each sentence, for any next-token scorer.

Shapes: B sentences in the batch, R rows as in `NextTokenScorer`, V symbols in the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, NextTokenScorer
from nmt.errors import UserError
from nmt.parsing.trees import MAX_DEPTH
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

SMALLEST_TREE = 3
"""Tokens of a tree besides its words: the brackets of the root, and EOS."""
NO_LABEL = -1
NO_WORD = ("(", ")", "")
"""What brackets begin with, and the empty symbol."""


@dataclass(frozen=True, slots=True)
class TreeSymbols:
    """The symbols of a vocabulary by kind, as booleans (V,), and the label (V,) of each bracket."""

    opening: Tensor
    closing: Tensor
    words: Tensor
    labels: Tensor

    @classmethod
    def of(cls, vocabulary: Sequence[str], device: torch.device) -> Self:
        """Find the brackets that can be both opened and closed; every other symbol of the text is a word."""
        symbols = [piece.removeprefix(SPACE_MARK) for piece in vocabulary]
        closable = {symbol[1:] for symbol in symbols if symbol.startswith(")")}
        labels = sorted(filter(None, closable & {symbol[1:] for symbol in symbols if symbol.startswith("(")}))
        if not labels:
            raise UserError(
                "decoding.well_formed=true needs a model of trees, whose vocabulary has brackets: use an experiment "
                "such as parsing/demo, or leave it out"
            )
        numbers = {label: number for number, label in enumerate(labels)}
        special = (UNK, PAD, BOS, EOS)
        return cls(
            torch.tensor([symbol.startswith("(") and symbol[1:] in numbers for symbol in symbols], device=device),
            torch.tensor([symbol.startswith(")") and symbol[1:] in numbers for symbol in symbols], device=device),
            torch.tensor(
                [token not in special and symbol[:1] not in NO_WORD for token, symbol in enumerate(symbols)],
                device=device,
            ),
            torch.tensor(
                [numbers.get(symbol[1:], NO_LABEL) if symbol[:1] in NO_WORD else NO_LABEL for symbol in symbols],
                device=device,
            ),
        )


def only_trees(scorer: NextTokenScorer, symbols: TreeSymbols, words: Tensor, max_lengths: Tensor) -> NextTokenScorer:
    """Return a scorer under which every hypothesis is one tree with exactly the words of its sentence.

    A bracket is opened only if there is room to close it. A sentence whose limit is too short for any tree is not
    restricted.

    Args:
        scorer: scores the next symbols.
        symbols: the vocabulary.
        words: (B,) words of each sentence.
        max_lengths: (B,) longest hypothesis of each sentence, EOS included.
    """
    state = _OpenTrees(symbols, words, max_lengths)

    def restricted(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = scorer(tokens, parents)
        state.extend(tokens.to(words.device), parents.to(words.device))
        return scores.masked_fill(~state.allowed(), NEVER)

    return restricted


class _OpenTrees:
    """The open brackets and the words left of each row."""

    def __init__(self, symbols: TreeSymbols, words: Tensor, limits: Tensor) -> None:
        self.symbols = symbols
        self.length = -1  # symbols so far; BOS is none
        self.words_left = words  # (R,)
        self.limits = limits  # (R,)
        self.restricted = (words > 0) & (limits >= words + SMALLEST_TREE)  # (R,)
        self.depth = torch.zeros_like(words)  # (R,) number of open brackets
        self.is_empty = torch.zeros_like(self.restricted)  # (R,) whether the last symbol opened a bracket
        self.stack = torch.full((len(words), MAX_DEPTH + 1), NO_LABEL, dtype=torch.int16, device=words.device)

    def extend(self, tokens: Tensor, parents: Tensor) -> None:
        """Extend rows by a token each; a token that is not allowed leaves a row in any valid state."""
        opens, closes = self.symbols.opening[tokens], self.symbols.closing[tokens]
        is_word = self.symbols.words[tokens]
        self.length += 1
        self.limits, self.restricted = self.limits[parents], self.restricted[parents]
        self.words_left = (self.words_left[parents] - is_word.long()).clamp(min=0)
        depth = self.depth[parents]
        self.stack = self.stack[parents]
        above = self.stack.gather(1, depth[:, None]).squeeze(1)
        pushed = self.symbols.labels[tokens].to(torch.int16).where(opens, above)
        self.stack.scatter_(1, depth[:, None], pushed[:, None])
        self.depth = (depth + opens.long() - closes.long()).clamp(0, MAX_DEPTH)
        self.is_empty = opens

    def allowed(self) -> Tensor:
        """Return which symbols (R, V) may come next."""
        symbols, depth, left = self.symbols, self.depth, self.words_left
        inside = depth > 0
        top = self.stack.gather(1, (depth - 1).clamp(min=0)[:, None])  # (R, 1)
        room = self.limits - self.length - 1 >= left + depth + 2  # for the words left, all brackets and EOS
        may_open = (left > 0) & (inside | (self.length == 0)) & (depth < MAX_DEPTH) & room
        may_close = inside & ~self.is_empty & ((depth > 1) | (left == 0))
        may_end = ~inside & (left == 0)
        allowed = (
            (symbols.opening & may_open[:, None])
            | (symbols.closing & may_close[:, None] & (symbols.labels == top))
            | (symbols.words & (inside & (left > 0))[:, None])
            | ~self.restricted[:, None]
        )
        # Rows of hypotheses that are already impossible must have a finite score, too.
        allowed[:, EOS] |= may_end | ~allowed.any(1)
        return allowed


class WellFormed:
    """`decoding.well_formed`: forbids what cannot become a tree over the words of the sentence."""

    def __init__(self, tokenizer: Tokenizer, device: torch.device) -> None:
        source, target = tokenizer.vocabularies
        self._symbols = TreeSymbols.of(target, device)
        tags = tokenizer.source_tags
        begins_word = [piece.startswith(SPACE_MARK) and token not in tags for token, piece in enumerate(source)]
        self._begins_word = torch.tensor(begins_word, device=device)

    def __call__(self, scorer: NextTokenScorer, sources: Sequence[Sequence[int]], limits: Tensor) -> NextTokenScorer:
        """See `nmt.decoding.masks.WellFormed`."""
        words = [int(self._begins_word[list(tokens)].sum()) for tokens in sources]
        return only_trees(scorer, self._symbols, torch.tensor(words, device=limits.device), limits)
