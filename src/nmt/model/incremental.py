"""Decoding a token at a time: keys and values are kept, so that each is worked out once.

Shapes: R rows (hypotheses), S sentences still decoded, t tokens so far, L longest source sentence.
"""

import torch
from torch import Tensor

from nmt.model.attention import Padding, attend, attention_mask
from nmt.model.layers import CrossAttention, SelfAttention
from nmt.model.packed import Packed

BLOCK = 16
"""Tokens by which the room for keys and values grows: reordering copies no more than it must."""


class DecoderState:
    """Keys and values of each decoder layer: of the source (once a sentence), and of each row's tokens so far."""

    def __init__(self, source: Packed, cross: list[tuple[Tensor, Tensor]], capacity: int) -> None:
        padding = Padding(source)
        self.cross = [(padding.pad(keys), padding.pad(values)) for keys, values in cross]  # (S, h_kv, L, d)
        self.cross_mask = attention_mask(source, source, causal=False)
        self.owners = torch.arange(source.sentences, device=source.tokens.device)
        self.sentences = source.sentences
        self.past: list[tuple[Tensor, Tensor] | None] = [None] * len(cross)  # (R, h_kv, room, d)
        self.capacity = capacity
        self.length = 0

    def follow(self, parents: Tensor) -> None:
        """Let row r go on from row `parents[r]`; sentences of which no row is left are dropped."""
        if len(parents) == len(self.owners) and torch.equal(parents, torch.arange(len(parents), device=parents.device)):
            return
        self.past = [pair and _select(pair, parents) for pair in self.past]
        owners = self.owners.index_select(0, parents)
        kept, self.owners = torch.unique_consecutive(owners, return_inverse=True)
        if len(kept) < self.sentences:
            self.sentences = len(kept)
            self.cross = [_select(pair, kept) for pair in self.cross]
            if self.cross_mask is not None:
                self.cross_mask = self.cross_mask.index_select(0, kept)

    def attend_self(self, index: int, attention: SelfAttention, stream: Tensor, rotation: Tensor | None) -> Tensor:
        """Attend from the new token of each row (R, d_model) to that row's tokens so far."""
        queries, keys, values = attention.project(stream, rotation)
        kept_keys, kept_values = self.past[index] = self._room(index, keys, values)
        kept_keys[:, :, self.length] = keys
        kept_values[:, :, self.length] = values
        until = self.length + 1
        share = attention.heads.share
        attended = attend(queries[:, :, None], share(kept_keys[:, :, :until]), share(kept_values[:, :, :until]), None)
        projected: Tensor = attention.output(attended.flatten(1))
        return projected

    def attend_source(self, index: int, attention: CrossAttention, stream: Tensor) -> Tensor:
        """Attend from the new token of each row (R, d_model) to its source sentence."""
        keys, values = self.cross[index]
        queries = attention.project_queries(stream)
        queries = queries.view(self.sentences, -1, *queries.shape[1:]).transpose(1, 2)  # (S, h, R / S, d)
        share = attention.heads.share
        attended = attend(queries, share(keys), share(values), self.cross_mask)
        projected: Tensor = attention.output(attended.transpose(1, 2).flatten(0, 1).flatten(1))
        return projected

    def _room(self, index: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        past = self.past[index]
        if past is not None and self.length < past[0].shape[2]:
            return past
        room = min(self.capacity, self.length + BLOCK)
        grown = tuple(new.new_empty(*new.shape[:2], room, new.shape[2]) for new in (keys, values))
        if past is not None:
            for new, old in zip(grown, past, strict=True):
                new[:, :, : self.length] = old
        return grown[0], grown[1]


def _select(pair: tuple[Tensor, Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:
    return pair[0].index_select(0, rows), pair[1].index_select(0, rows)
