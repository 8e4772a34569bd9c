"""The KV cache: decoding a token at a time without recomputing the keys and values of earlier tokens.

The rows (hypotheses) of a sentence are adjacent, and all sentences have the same number of rows, so that these attend
to their source together. The keys of all heads of a token, then its values, are stored next to each other.

Shapes: N layers; R rows; S source sentences that rows still attend to, L longest of them; P earlier tokens; h query
heads, h_kv key and value heads; w = h_kv (d_k + d_v).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import Attend, AttendSource, ScoreBias, exact_type, joined
from nmt.model.packed import Packed, Padding
from nmt.model.positions import Places

MORE_STEPS = 32
"""Steps for which there is room whenever the keys and values of the rows are moved."""

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
        stored = [padding.pad(_stored(*pair)[:, None])[:, 0] for pair in cross or prefix]  # (S, L, w) of each layer
        self.key_heads = (cross or prefix)[0][0].shape[1]
        self.mask: Tensor | None = None  # (S, L), or (R, L) of the prefix: 0, or -inf after a sentence's end
        if source.ended is not None:
            self.mask = stored[0].new_zeros(source.ended.shape).masked_fill_(source.ended, -torch.inf)
        self.longest = source.longest if prefix else 0  # of the sources in `past`
        self.cross = stored if cross else []
        self.past = stored[0].new_empty(len(stored), source.sentences, self.longest, stored[0].shape[2])  # (N, R, P, w)
        for layer, each in enumerate(stored if prefix else ()):
            self.past[layer] = each
        self.before = source.lengths.long() if prefix else None  # (R,) tokens of each row before those that it takes
        self.length = 0  # tokens that each row has taken; `taken` is the same on the device
        self.taken = torch.zeros((), dtype=torch.int64, device=self.device)
        self.static = self.device.type == "cuda"  # whether steps stay in the same memory, and so can be recorded
        self.seen = 0  # tokens to which rows attend, or places for them
        self.sentences = self.rows = source.sentences

    def repeat(self, copies: int) -> None:
        """Let each sentence stand several times, one after the other; call this before the first step."""
        if copies > 1:
            index = torch.arange(self.rows * copies, device=self.device) // copies
            self._select(index)
            self.past = self.past.index_select(1, index)
            self.sentences = self.rows = len(index)

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but these, which are on the device; the next step continues none of their rows."""
        self.sentences = len(sentences)
        if self.cross:
            self._select(sentences)
        else:
            self.rows = 0  # `begin_step` selects the rows that go on, even if there are as many as before

    @property
    def places(self) -> Places:
        """The positions of the rows' new tokens."""
        return Places(self.taken.expand(self.rows) if self.before is None else self.before + self.taken, self.seen)

    def fits(self, rows: int) -> bool:
        """Return whether the next step, of this number of rows, can take place in the memory of the last one."""
        return rows == self.rows and self.longest + self.length < self.past.shape[2]

    def begin_step(self, parents: Tensor) -> None:
        """Let row r continue row `parents[r]` with a new token.

        Parents on a CPU tell which sentences have no rows any more; on a device, `keep` does.
        """
        moved = True
        if parents.device.type == "cpu":
            rows, rows_per_sentence = parents.numpy(), self.rows // self.sentences
            moved, kept = not np.array_equal(rows, np.arange(self.rows)), np.unique(rows // rows_per_sentence)
            if len(kept) < self.sentences:
                self.keep(torch.from_numpy(kept).to(self.device, non_blocking=True))
        parents, used, fits = (
            parents.to(self.device, non_blocking=True),
            self.longest + self.length,
            self.fits(len(parents)),
        )
        self.rows = len(parents)
        if fits and moved and self.static:
            self.past.copy_(self.past.index_select(1, parents))
        elif moved or not fits:
            past = self.past[:, :, :used]
            past = past.index_select(1, parents) if moved else past
            # zeros: attention multiplies what a step does not see yet by 0
            self.past = past.new_zeros(len(past), self.rows, used + MORE_STEPS, past.shape[3])
            self.past[:, :, :used] = past
        if not fits and not self.cross:
            self._select(parents)
        self.seen = self.past.shape[2] if self.static else used + 1
        self._prepare_attention()

    def _prepare_attention(self) -> None:
        """Compute what the layers' attention to the tokens so far has in common."""
        steps = torch.arange(self.seen - self.longest, device=self.device) - self.taken
        self.place, self.past_mask = self.longest + self.taken[None], None
        if self.static:
            hidden = torch.arange(self.seen, device=self.device) > self.place
            self.past_mask = self.past.new_zeros(1, self.seen).masked_fill_(hidden, -torch.inf)
        if not self.cross and self.mask is not None:
            prefix = F.pad(self.mask, (0, self.seen - self.longest))[:, None, None]
            self.past_mask = prefix if self.past_mask is None else prefix + self.past_mask
        self.distances = steps[None]  # (1 or R, P) from the new token
        if self.before is not None:
            of_prefix = torch.arange(self.longest, device=self.device) - (self.before + self.taken)[:, None]
            self.distances = torch.cat([of_prefix, self.distances.expand(self.rows, -1)], 1)

    def end_step(self) -> None:
        """Count the token that each row has taken."""
        self.taken += 1
        self.length += 1

    @contextmanager
    def trial_step(self) -> Iterator[None]:
        """Undo the step that is taken in this block, for which there is memory."""
        past = self.past.clone()
        yield
        self.past.copy_(past)
        self.taken -= 1
        self.length -= 1

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
        self.past[layer].index_copy_(1, self.place, _stored(keys, values)[:, None])
        past = self.past[layer, :, : self.seen]
        queries, mask = queries[:, :, None], self.past_mask
        if bias is not None:
            past = past.to(exact_type(queries))
            scores = bias(queries.to(past.dtype), self.distances[:, None])
            mask = scores if mask is None else mask + scores
        return self._attend(queries, past, mask).flatten(1)

    def _attend_source(self, layer: int, queries: Tensor, _: Callable[[Tensor], KeysValues]) -> Tensor:
        """Attend from the new token of each row to its source sentence."""
        blocks = queries.unflatten(0, (self.sentences, -1)).transpose(1, 2)
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
