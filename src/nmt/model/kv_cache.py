"""The KV cache: decoding a token at a time without recomputing the keys and values of earlier tokens.

Every token of a hypothesis has a slot, and each row (hypothesis) a path: the slots of its tokens. So selecting
hypotheses moves no keys and values.

Shapes: R rows; S source sentences that rows still attend to, L longest of them; P slots in a path; h query heads, h_kv
key and value heads.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import Attend, AttendSource, ScoreBias, exact_type
from nmt.model.packed import Packed, Padding

FIRST_STEPS = 32
"""The number of steps for which there are slots at first."""

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
        padding = Padding(source)
        self.cross = [_exact((padding.pad(keys), padding.pad(values))) for keys, values in cross]  # (S, h_kv, L, d)
        self.source_mask = _hiding(source.ended)  # (S, L): 0, or -inf after a sentence's end; None if all are as long
        self.prefixed = bool(prefix)
        self.slots = [_exact(pair) for pair in prefix]  # (slots, h_kv, d) of each layer
        self.used = len(source.tokens) if prefix else 0  # slots in use
        self.length = 0  # tokens that each row has taken
        self.longest = source.longest if prefix else 0  # tokens of a row before these
        self.device = source.tokens.device
        count = source.sentences
        self.source_of_row = np.arange(count)  # (R,) the places in `cross`
        self.before = source.lengths.long() if prefix else source.offsets.new_zeros(count, dtype=torch.int64)  # (R,)
        places = torch.arange(self.longest, device=self.device)
        self.paths = (source.offsets[:-1, None] + places).clamp(max=max(0, self.used - 1))  # (R, P)
        self.paths_mask = self.source_mask if prefix else None  # (R, P)
        self.slot_positions = places - self.before[:, None]  # (R, P) counted from the first target token
        self.blocks: Tensor | None = None

    def repeat(self, copies: int) -> None:
        """Let each sentence have several rows, next to each other; call this before the first step."""
        self.source_of_row = self.source_of_row.repeat(copies)
        self.before, self.paths = self.before.repeat_interleave(copies), self.paths.repeat_interleave(copies, 0)
        self.slot_positions = self.slot_positions.repeat_interleave(copies, 0)
        if self.paths_mask is not None:
            self.paths_mask = self.paths_mask.repeat_interleave(copies, 0)

    @property
    def positions(self) -> Tensor:
        """(R,) the positions of the rows' new tokens."""
        return self.before + self.length

    def begin_step(self, parents: Tensor) -> None:
        """Let row r continue row `parents[r]`, which is on the CPU, with a new token."""
        self._arrange(self.source_of_row[parents.numpy()])
        parents = parents.to(self.device)
        new = torch.arange(self.used, self.used + len(parents), device=self.device)
        self.used += len(parents)
        self.before = self.before.index_select(0, parents)
        self.paths = torch.cat([self.paths.index_select(0, parents), new[:, None]], 1)
        if self.prefixed:
            positions = self.slot_positions.index_select(0, parents)
            self.slot_positions = F.pad(positions, (0, 1), value=self.length)
            if self.paths_mask is not None:
                self.paths_mask = F.pad(self.paths_mask.index_select(0, parents), (0, 1))
        else:
            self.slot_positions = torch.arange(self.length + 1, device=self.device)[None]

    def attention(self, layer: int) -> tuple[Attend, AttendSource]:
        """Return how a decoder layer attends in this step: to the tokens so far, and to the source."""
        return partial(self._attend_self, layer), partial(self._attend_source, layer)

    def _attend_self(
        self, layer: int, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None
    ) -> Tensor:
        """Store the new token of each row, and attend from it to the row's tokens so far."""
        if layer == len(self.slots):
            self.slots.append(_exact((keys[:0], values[:0])))
        old_keys, old_values = self.slots[layer]
        self.slots[layer] = self._stored(old_keys, keys), self._stored(old_values, values)
        past_keys, past_values = (each[self.paths].transpose(1, 2) for each in self.slots[layer])  # (R, h_kv, P, d)
        mask = None if self.paths_mask is None else self.paths_mask[:, None, None]
        queries = queries[:, :, None]
        if bias is not None:
            exact, distances = exact_type(queries), (self.slot_positions - self.length)[:, None]
            past_keys, past_values = past_keys.to(exact), past_values.to(exact)
            scores = bias(queries.to(exact), distances)
            mask = scores if mask is None else mask + scores
        return _attend(queries, past_keys, past_values, mask).flatten(1)

    def _stored(self, slots: Tensor, new: Tensor) -> Tensor:
        """Return the slots with those of this step, which are the last ones in use."""
        if self.used > len(slots):
            room = len(new) + max(len(slots), FIRST_STEPS * len(new))
            slots = F.pad(slots[: self.used - len(new)], (0, 0, 0, 0, 0, room))
        slots.narrow(0, self.used - len(new), len(new)).copy_(new)
        return slots

    def _attend_source(self, layer: int, queries: Tensor, _: Callable[[Tensor], KeysValues]) -> Tensor:
        """Attend from the new token of each row to its source sentence."""
        keys, values = self.cross[layer]
        blocks = queries
        if self.blocks is not None:
            blocks = queries.new_zeros(len(keys) * self.block_rows, *queries.shape[1:])
            blocks = blocks.index_copy_(0, self.blocks, queries)
        mask = None if self.source_mask is None else self.source_mask[:, None, None]
        attended = _attend(blocks.unflatten(0, (len(keys), -1)).transpose(1, 2), keys, values, mask)
        attended = attended.transpose(1, 2).flatten(0, 1)  # (rows of all blocks, h, d_v)
        return (attended if self.blocks is None else attended.index_select(0, self.blocks)).flatten(1)

    def _arrange(self, source_of_row: npt.NDArray[np.int64]) -> None:
        """Drop the sources that no row attends to any more, and place the rows of each source in one block."""
        kept, self.source_of_row, counts = np.unique(source_of_row, return_inverse=True, return_counts=True)
        self.block_rows, rows = int(counts.max()), len(source_of_row)
        if self.cross and len(kept) < len(self.cross[0][0]):
            index = torch.from_numpy(kept).to(self.device)
            self.cross = [(keys[index], values[index]) for keys, values in self.cross]
            self.source_mask = None if self.source_mask is None else self.source_mask[index]
        self.blocks = None
        if rows < len(kept) * self.block_rows:
            ranks = np.arange(rows) - (counts.cumsum() - counts)[self.source_of_row]
            self.blocks = torch.from_numpy(self.source_of_row * self.block_rows + ranks).to(self.device)


def _hiding(ended: Tensor | None) -> Tensor | None:
    """Return what is added to scores so that these keys are not seen."""
    return None if ended is None else torch.zeros(ended.shape, device=ended.device).masked_fill_(ended, -torch.inf)


def _exact(pair: KeysValues) -> KeysValues:
    """Return keys and values in the precision in which attention is fast: on a CPU that is float32, even with casts."""
    keys, values = pair
    exact = exact_type(keys) if keys.device.type == "cpu" else keys.dtype
    return keys.to(exact), values.to(exact)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k) + mask) V, (..., h, Lq, d_v), in the precision of the queries."""
    shared = queries.shape[1] != keys.shape[1]
    mask = None if mask is None else mask.to(keys.dtype)
    attended = F.scaled_dot_product_attention(queries.to(keys.dtype), keys, values, attn_mask=mask, enable_gqa=shared)
    return attended.to(queries.dtype)
