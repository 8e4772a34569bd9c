"""Cross-attention of several copies of a sentence to one source, whose keys and values are stored once.

Shapes: S sentences still being decoded, R rows of all of them, G sources that still have rows, N rows in the largest
group of rows that share a source.
"""

import torch
from torch import Tensor


class SharedSources:
    """Places the rows that share a source in one block per source, so that they attend to it together."""

    def __init__(self, copies: Tensor) -> None:
        """Take the source (S,) of each sentence; at first, row s belongs to sentence s."""
        self.of_sentence = copies
        self.arrange(torch.arange(len(copies), device=copies.device))

    def arrange(self, sentence_of_row: Tensor) -> Tensor:
        """Place the rows, given the sentence (R,) of each; return which of the sources before still have rows (G,)."""
        kept: Tensor
        kept, sources, counts = self.of_sentence[sentence_of_row].unique(return_inverse=True, return_counts=True)
        self.of_sentence = torch.searchsorted(kept, self.of_sentence)
        largest, firsts = int(counts.max()), counts.cumsum(0) - counts
        order = sources.argsort(stable=True)
        ranks = torch.empty_like(order)
        ranks[order] = torch.arange(len(order), device=order.device)
        self.places = sources * largest + ranks - firsts[sources]  # (R,) in the flattened blocks (G, N)
        self.size = len(kept) * largest
        return kept

    def pad(self, queries: Tensor) -> Tensor:
        """Return the queries (R, h, d) in flattened blocks (G N, h, d)."""
        return queries.new_zeros(self.size, *queries.shape[1:]).index_copy_(0, self.places, queries)

    def unpad(self, attended: Tensor) -> Tensor:
        """Return the rows (R, h d) of flattened blocks (G N, h d)."""
        return attended.index_select(0, self.places)
