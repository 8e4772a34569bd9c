"""The control that searches only well-formed trees."""

import torch

from nmt.decoding.beam import Choose, NextTokenScorer
from nmt.decoding.control import Control, SearchBatch, SearchSetup
from nmt.features.trees.constraint import TreeSymbols, only_trees
from nmt.text.tokenizer import SPACE_MARK


class WellFormed(Control):
    """Forbids what cannot become a tree over the words of the sentence."""

    def __init__(self, setup: SearchSetup) -> None:
        source, target = setup.tokenizer.vocabularies
        self._symbols = TreeSymbols.of(target, setup.device)
        tags = setup.tokenizer.source_tags
        begins_word = [piece.startswith(SPACE_MARK) and token not in tags for token, piece in enumerate(source)]
        self._begins_word = torch.tensor(begins_word, device=setup.device)

    def begin(self, scorer: NextTokenScorer, batch: SearchBatch) -> tuple[NextTokenScorer, Choose | None]:
        """See `Control.begin`."""
        words = [int(self._begins_word[list(tokens)].sum()) for tokens in batch.sources]
        counts = torch.tensor(words, device=batch.max_lengths.device)
        return only_trees(scorer, self._symbols, counts, batch.max_lengths), None
