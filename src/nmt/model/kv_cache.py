"""The KV cache: decoding a token at a time without recomputing the keys and values of earlier tokens.

The rows (hypotheses) of a sentence share one block of slots. Every token that one of them has taken has a slot, and a
mask says which slots each row can see: those of its own prefix. So selecting hypotheses moves no keys and values.

Shapes: S sentences still being decoded, n rows per sentence, R = S * n rows; L longest source sentence, P slots per
sentence; h query heads, h_kv key and value heads. If copies of a sentence share its source (`KVCache.repeat`), they
count as different sentences here, except in `cross` and `source_mask`.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import Attend, AttendSource, ScoreBias, exact_type
from nmt.model.packed import Packed, Padding
from nmt.model.shared_sources import SharedSources

SPARE_STEPS = 4
"""The number of steps for which slots are allocated. When they are used up, slots that no row can see are reused."""
MANY_SPARE_STEPS = 12
"""The same, if slots that no row can see cost no time."""
SLOT_MULTIPLE = 16
"""Slots come in multiples of this, and a source has at least this many: on CPUs, a softmax over shorter rows is ten
times as slow, and products with other numbers of keys up to twice as slow."""

KeysValues = tuple[Tensor, Tensor]
"""Keys (..., h_kv, d_k) and values (..., h_kv, d_v)."""


class KVCache:
    """Keys and values of each decoder layer: of the source, and of the tokens that the rows have taken so far."""

    def __init__(self, source: Packed, cross: Sequence[KeysValues], prefix: Sequence[KeysValues] = ()) -> None:
        """Store keys and values of the packed source.

        Args:
            source: The source sentences.
            cross: What each layer's cross-attention attends to, if the model has cross-attention.
            prefix: What each layer's self-attention begins with, if it has read the source itself.
        """
        padding, missing = Padding(source), max(0, SLOT_MULTIPLE - source.longest)

        def pad(heads: Tensor) -> Tensor:
            block = padding.pad(heads)
            # attention in float32 is faster on a CPU, even with the casts
            return _append_slots(block if block.is_cuda or block.dtype == torch.float64 else block.float(), missing)

        self.cross = [(pad(keys), pad(values)) for keys, values in cross]  # (S, h_kv, L, d)
        prefilled = [(pad(keys), pad(values)) for keys, values in prefix]
        keys, _ = (self.cross or prefilled)[0]
        ended = keys.new_zeros(source.sentences, source.longest)
        if source.ended is not None:
            ended.masked_fill_(source.ended, -torch.inf)
        self.source_mask = F.pad(ended, (0, missing), value=-torch.inf)  # (S, L): 0, or -inf after a sentence's end
        self.sentence_of_row = torch.arange(source.sentences, device=keys.device)  # (R,)
        self.length = 0  # tokens that each row has taken
        self.sentences = source.sentences
        self.past = prefilled or [(keys[:, :, :0], values[:, :, :0]) for keys, values in self.cross]  # (S, h_kv, P, d)
        self.used = self.past[0][0].shape[2]  # slots in use
        self.source_lengths, self.longest_source = source.lengths.long(), source.longest  # (S,)
        slots = torch.arange(self.used, device=keys.device)
        self.slot_positions = slots - self.source_lengths[:, None]  # (S, P) counted from the first target token
        self.mask = self.source_mask[:, : self.used]  # (R, P): 0 if the row can see the slot, else -inf
        self.shared: SharedSources | None = None
        self.spare_steps = SPARE_STEPS

    def repeat(self, copies: int) -> None:
        """Repeat each sentence in the batch, its copies next to each other; call this before the first step.

        The copies are decoded like different sentences, but share the keys and values of cross-attention.
        """
        if copies == 1:
            return

        def repeated(block: Tensor) -> Tensor:
            return block.repeat_interleave(copies, 0)

        if self.cross:
            self.shared = SharedSources(repeated(self.sentence_of_row))
        else:
            self.source_mask = repeated(self.source_mask)
        self.sentences *= copies
        self.sentence_of_row = torch.arange(self.sentences, device=self.mask.device)
        self.past = [(repeated(keys), repeated(values)) for keys, values in self.past]
        self.mask, self.slot_positions = repeated(self.mask), repeated(self.slot_positions)
        self.source_lengths = repeated(self.source_lengths)

    def begin_step(self, parents: Tensor) -> None:
        """Let row r continue row `parents[r]` with a new token; sentences without any rows left are dropped."""
        sentence_of_row = self.sentence_of_row.index_select(0, parents)
        if not torch.equal(sentence_of_row, self.sentence_of_row):
            kept, self.sentence_of_row = torch.unique_consecutive(sentence_of_row, return_inverse=True)
            self._keep_sentences(kept)
            self._keep_shared_sources()
        rows = parents.shape[0] // self.sentences
        self.mask = self.mask.index_select(0, parents)
        if self.used + rows > self.mask.shape[1]:
            self._compact_and_extend(rows)
        new = self.mask.view(self.sentences, rows, -1).narrow(2, self.used, rows)
        new.diagonal(dim1=1, dim2=2).zero_()
        self.slot_positions.narrow(1, self.used, rows).fill_(self.length)
        self.used += rows

    def attention(self, layer: int) -> tuple[Attend, AttendSource]:
        """Return how a decoder layer attends in this step: to the tokens so far, and to the source."""
        return partial(self._attend_self, layer), partial(self._attend_source, layer)

    def _attend_self(
        self, layer: int, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None
    ) -> Tensor:
        """Store the new token of each row, and attend from it to the row's tokens so far."""
        rows = queries.shape[0] // self.sentences
        past = self.past[layer]
        for slots, new in zip(past, (keys, values), strict=True):
            block = new.view(self.sentences, rows, *new.shape[1:]).transpose(1, 2)
            slots.narrow(2, self.used - rows, rows).copy_(block)
        mask = self.mask.view(self.sentences, 1, rows, -1)
        if bias is None:
            return _attend(queries, *past, mask)
        exact, distances = exact_type(queries), (self.slot_positions - self.length)[:, None]
        mask = mask + bias(queries.unflatten(0, (-1, rows)).transpose(1, 2).to(exact), distances)
        keys, values = past
        return _attend(queries, keys.to(exact), values.to(exact), mask.to(exact))

    def _attend_source(self, layer: int, queries: Tensor, _: Callable[[Tensor], KeysValues]) -> Tensor:
        """Attend from the new token of each row to its source sentence."""
        cross, mask = self.cross[layer], self.source_mask[:, None, None]
        if self.shared is None:
            return _attend(queries, *cross, mask)
        return self.shared.unpad(_attend(self.shared.pad(queries), *cross, mask))

    def _keep_sentences(self, kept: Tensor) -> None:
        """Drop all sentences except `kept`, which move to the front."""
        places = torch.arange(len(kept), device=kept.device)
        if len(kept) == self.sentences and torch.equal(kept, places):
            return
        self.sentences = len(kept)
        to = (kept != places).nonzero().squeeze(1)
        moved = kept[to]

        def keep(block: Tensor) -> Tensor:
            return block[: len(kept)].index_copy_(0, to, block.index_select(0, moved))

        if self.shared is None:
            self.cross = [(keep(keys), keep(values)) for keys, values in self.cross]
            self.source_mask = keep(self.source_mask)
        else:
            self.shared.of_sentence = keep(self.shared.of_sentence)
        self.past = [(keep(keys), keep(values)) for keys, values in self.past]
        self.slot_positions, self.source_lengths = keep(self.slot_positions), keep(self.source_lengths)

    def _keep_shared_sources(self) -> None:
        """Drop the shared sources that no row attends to any more."""
        if self.shared is None:
            return
        kept = self.shared.arrange(self.sentence_of_row)
        if len(kept) < len(self.source_mask):
            self.cross = [(keys[kept], values[kept]) for keys, values in self.cross]
            self.source_mask = self.source_mask[kept]

    def _compact_and_extend(self, rows: int) -> None:
        """Drop the slots that no row can see, and append empty slots for at least `spare_steps` steps."""
        mask = self.mask.unflatten(0, (self.sentences, rows))
        seen = (mask == 0).any(1)
        self.used = int(seen.sum(1).max())
        kept = seen.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : self.used]
        empty = -(-(self.used + self.spare_steps * rows) // SLOT_MULTIPLE) * SLOT_MULTIPLE - self.used

        def move(slots: Tensor) -> Tensor:
            index = kept[:, None, :, None].expand(-1, slots.shape[1], -1, slots.shape[3])
            return _append_slots(slots.gather(2, index), empty)  # take_along_dim would check the sign of every index

        self.past = [(move(keys), move(values)) for keys, values in self.past]
        self.slot_positions = F.pad(self.slot_positions.gather(1, kept), (0, empty))
        mask = F.pad(mask.gather(2, kept[:, None].expand(-1, rows, -1)), (0, empty), value=-torch.inf)
        self.mask = mask.flatten(0, 1)


def _append_slots(slots: Tensor, count: int) -> Tensor:
    """Append empty slots to (S, h_kv, P, d)."""
    return F.pad(slots, (0, 0, 0, count))


def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k) + mask) V.

    Queries (R, h, d_k), keys (S, h_kv, L, d_k) and values (S, h_kv, L, d_v) give (R, h d_v). The mask is
    (S, h or 1, n or 1, L).
    """
    sentences, heads, _, width = keys.shape
    count, shared = queries.shape[1], queries.shape[1] != heads
    attended = F.scaled_dot_product_attention(
        queries.to(keys.dtype).view(sentences, -1, count, width).transpose(1, 2),
        keys,
        values,
        attn_mask=mask,
        enable_gqa=shared,
    )
    return attended.transpose(1, 2).reshape(queries.shape[0], -1).to(queries.dtype)
