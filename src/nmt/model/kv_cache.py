"""The KV cache: decoding a token at a time without recomputing the keys and values of earlier tokens.

The rows (hypotheses) of a sentence are adjacent, and all sentences have the same number of rows, so that these attend
to their source together. The keys of all heads of a token, then its values, are stored next to each other.

Shapes: R rows; S source sentences that rows still attend to, L longest of them; P earlier tokens; h query heads, h_kv
key and value heads; w = h_kv (d_k + d_v).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import Attend, AttendSource, ScoreBias, exact_type, joined
from nmt.model.packed import Packed, Padding

KeysValues = tuple[Tensor, Tensor]
"""Keys (..., h_kv, d_k) and values (..., h_kv, d_v)."""


class KVCache:
    """Keys and values of each decoder layer: of the source, and of the tokens that the rows have taken so far."""

    def __init__(self, source: Packed, cross: Sequence[KeysValues], prefix: Sequence[KeysValues] = ()) -> None:
        """Store keys and values of the packed source; at first, each sentence has one row.

        Args:
            source: The source sentences.
            cross: What each layer's cross-attention attends to, if the model has cross-attention.
            prefix: What each layer's self-attention begins with, if it has read the source itself.
        """
        padding, self.device = Padding(source), source.tokens.device
        self.cross, self.past = (  # (S, L, w) and (R, P, w) of each layer
            [padding.pad(_stored(*pair)[:, None])[:, 0] for pair in layers] for layers in (cross, prefix)
        )
        self.mask: Tensor | None = None  # (S, L), or (R, L) of the prefix: 0, or -inf after a sentence's end
        if source.ended is not None:
            self.mask = (
                (self.cross or self.past)[0].new_zeros(source.ended.shape).masked_fill_(source.ended, -torch.inf)
            )
        self.longest = source.longest if prefix else 0  # of the sources in `past`
        self.before = source.lengths.long() if prefix else None  # (R,) tokens of each row before those that it takes
        self.length = 0  # tokens that each row has taken
        self.key_heads = (cross or prefix)[0][0].shape[1]
        self.rows, self.rows_per_sentence = source.sentences, 1

    def repeat(self, copies: int) -> None:
        """Let each sentence stand several times, one after the other; call this before the first step."""
        if copies > 1:
            self.rows *= copies
            index = torch.arange(self.rows, device=self.device) // copies
            self._select(index)
            self.past = [each.index_select(0, index) for each in self.past]

    @property
    def positions(self) -> Tensor:
        """(R,) the positions of the rows' new tokens."""
        if self.before is None:
            return torch.full((self.rows,), self.length, device=self.device)
        return self.before + self.length

    def begin_step(self, parents: Tensor) -> None:
        """Let row r continue row `parents[r]`, which is on the CPU, with a new token."""
        before, rows = np.arange(self.rows), parents.numpy()
        sentences = np.unique(rows // self.rows_per_sentence)
        fewer, moved = len(sentences) * self.rows_per_sentence < self.rows, not np.array_equal(before, rows)
        self.rows, self.rows_per_sentence = len(rows), len(rows) // len(sentences)
        self.parents = parents.to(self.device, non_blocking=True) if moved else None
        if self.cross and fewer:
            self._select(torch.from_numpy(sentences).to(self.device, non_blocking=True))
        elif not self.cross and self.parents is not None:
            self._select(self.parents)
        self.past_mask = None
        if not self.cross and self.mask is not None:
            self.past_mask = F.pad(self.mask, (0, self.length + 1))[:, None, None]
        self.distances = torch.arange(-self.length, 1, device=self.device)[None]  # (1 or R, P) from the new token
        if self.before is not None:
            of_prefix = torch.arange(self.longest, device=self.device) - self.positions[:, None]
            self.distances = torch.cat([of_prefix, self.distances.expand(self.rows, -1)], 1)

    def _select(self, index: Tensor) -> None:
        """Keep these sentences, or rows if they begin with the source."""
        self.cross = [each.index_select(0, index) for each in self.cross]
        self.mask = None if self.mask is None else self.mask.index_select(0, index)
        self.before = None if self.before is None else self.before.index_select(0, index)

    def attention(self, layer: int) -> tuple[Attend, AttendSource]:
        """Return how a decoder layer attends in this step: to the tokens so far, and to the source."""
        return partial(self._attend_self, layer), partial(self._attend_source, layer)

    def _attend_self(
        self, layer: int, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None
    ) -> Tensor:
        """Store the new token of each row, and attend from it to the row's tokens so far."""
        past = _stored(keys, values)[:, None]
        if layer < len(self.past):
            before = self.past.pop(layer)
            past = torch.cat([before if self.parents is None else before.index_select(0, self.parents), past], 1)
        self.past.insert(layer, past)
        queries, mask = queries[:, :, None], self.past_mask
        if bias is not None:
            past = past.to(exact_type(queries))
            scores = bias(queries.to(past.dtype), self.distances[:, None])
            mask = scores if mask is None else mask + scores
        return self._attend(queries, past, mask).flatten(1)

    def _attend_source(self, layer: int, queries: Tensor, _: Callable[[Tensor], KeysValues]) -> Tensor:
        """Attend from the new token of each row to its source sentence."""
        blocks = queries.unflatten(0, (-1, self.rows_per_sentence)).transpose(1, 2)
        mask = None if self.mask is None else self.mask[:, None, None]
        return self._attend(blocks, self.cross[layer], mask).transpose(1, 2).flatten(0, 1).flatten(1)

    def _attend(self, queries: Tensor, stored: Tensor, mask: Tensor | None) -> Tensor:
        """Return softmax(Q K^T / sqrt(d_k) + mask) V, (..., h, Lq, d_v), in the precision of the queries."""
        width = self.key_heads * queries.shape[-1]
        keys, values = (
            each.unflatten(2, (self.key_heads, -1)).transpose(1, 2)
            for each in (stored[..., :width], stored[..., width:])
        )
        attended = F.scaled_dot_product_attention(
            queries.to(keys.dtype), keys, values, attn_mask=mask, enable_gqa=queries.shape[1] != self.key_heads
        )
        return attended.to(queries.dtype)


def _stored(keys: Tensor, values: Tensor) -> Tensor:
    """Return (..., w) in the precision in which attention is fast: on a CPU that is float32, even with casts."""
    both = joined([keys.flatten(1), values.flatten(1)])
    return both.to(exact_type(both)) if both.device.type == "cpu" else both
