"""The search among well-formed trees only: `decoding.well_formed`."""

import torch

from nmt.decoding.beam import NextTokenScorer
from nmt.decoding.search import SearchBatch
from nmt.parsing.constraint import TreeSymbols, only_trees
from nmt.text.tokenizer import SPACE_MARK, Tokenizer


class WellFormed:
    """Forbids what cannot become a tree over the words of the sentence."""

    def __init__(self, tokenizer: Tokenizer, device: torch.device) -> None:
        source, target = tokenizer.vocabularies
        self._symbols = TreeSymbols.of(target, device)
        tags = tokenizer.source_tags
        begins_word = [piece.startswith(SPACE_MARK) and token not in tags for token, piece in enumerate(source)]
        self._begins_word = torch.tensor(begins_word, device=device)

    def __call__(self, scorer: NextTokenScorer, batch: SearchBatch) -> NextTokenScorer:
        """See `nmt.decoding.search.WellFormed`."""
        words = [int(self._begins_word[list(tokens)].sum()) for tokens in batch.sources]
        counts = torch.tensor(words, device=batch.max_lengths.device)
        return only_trees(scorer, self._symbols, counts, batch.max_lengths)
