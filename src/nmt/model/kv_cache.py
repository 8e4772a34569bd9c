"""Decoding a token at a time: keys and values are kept, so that each is worked out once.

The rows of a sentence share its past. All tokens that they took lie in one place, and each row knows which of them
it goes on from, so choosing among rows moves no keys and values.

Shapes: S sentences still decoded, n rows (hypotheses) of each, R = S * n rows; L longest source sentence, P places
for the tokens of a sentence's rows; h heads of queries, g of them to each of the h_kv heads of keys and values.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import Padding
from nmt.model.layers import CrossAttention, SelfAttention
from nmt.model.packed import Packed
from nmt.model.positions.base import Transform

SPARE = 4
"""Calls that there is room for when places run out: then those that no row goes on from are given up."""
TOKEN_MULTIPLE = 16
"""Places come in multiples of this, and keys of the source are no fewer: a CPU's softmax over shorter rows takes
ten times as long, and products with odd numbers of keys up to twice as long."""


class DecoderState:
    """Keys and values of each decoder layer: of the source, and of the tokens that the rows have taken so far."""

    def __init__(self, source: Packed, cross: list[tuple[Tensor, Tensor]]) -> None:
        padding, missing = Padding(source), max(0, TOKEN_MULTIPLE - source.longest)

        def keep(kind: Tensor) -> Tensor:  # a CPU's attention in float32 is faster, even with casts
            block = padding.pad(kind)
            return _widened(block if block.is_cuda or block.dtype == torch.float64 else block.float(), missing)

        self.cross = [(keep(keys), keep(values)) for keys, values in cross]  # (S, h_kv, L, d)
        keys, _ = self.cross[0]
        ended = keys.new_zeros(source.sentences, source.longest)
        if source.ended is not None:
            ended.masked_fill_(source.ended, -torch.inf)
        self.ended = F.pad(ended, (0, missing), value=-torch.inf)  # (S, L): minus infinity behind a sentence's end
        self.length = 0
        self.sentences = source.sentences
        self.past = [(keys[:, :, :0], values[:, :, :0]) for keys, values in self.cross]  # (S, h_kv, P, d)
        self.taken = 0  # places of P
        self.hidden = keys.new_zeros(source.sentences, 0)  # (R, P): 0 where a row goes on from it, else minus infinity
        self.owners = torch.arange(source.sentences, device=keys.device)  # (R,) sentence of each row

    def follow(self, parents: Tensor) -> None:
        """Let row r go on from row `parents[r]` with a new token; sentences of which no row is left are dropped."""
        owners = self.owners.index_select(0, parents)
        if not torch.equal(owners, self.owners):
            kept, self.owners = torch.unique_consecutive(owners, return_inverse=True)
            self._keep(kept)
        rows = parents.shape[0] // self.sentences
        self.hidden = self.hidden.index_select(0, parents)
        if self.taken + rows > self.hidden.shape[1]:
            self._make_room(rows)
        new = self.hidden.view(self.sentences, rows, -1).narrow(2, self.taken, rows)
        new.diagonal(dim1=1, dim2=2).zero_()
        self.taken += rows

    def attend_self(self, index: int, attention: SelfAttention, stream: Tensor, transform: Transform | None) -> Tensor:
        """Attend from the new token of each row (R, d_model) to that row's tokens so far."""
        queries, *new = attention.project(stream, transform)
        rows = stream.shape[0] // self.sentences
        for past, part in zip(self.past[index], new, strict=True):
            split = part.view(self.sentences, rows, *part.shape[1:]).transpose(1, 2)
            past.narrow(2, self.taken - rows, rows).copy_(split)
        projected: Tensor = attention.output(_attend(queries, *self.past[index], self.hidden))
        return projected

    def attend_source(self, index: int, attention: CrossAttention, stream: Tensor) -> Tensor:
        """Attend from the new token of each row (R, d_model) to its source sentence."""
        attended = _attend(attention.project_queries(stream), *self.cross[index], self.ended)
        projected: Tensor = attention.output(attended)
        return projected

    def _keep(self, kept: Tensor) -> None:
        """Drop all sentences but these, which take the first places."""
        places = torch.arange(len(kept), device=kept.device)
        if len(kept) == self.sentences and torch.equal(kept, places):
            return
        self.sentences = len(kept)
        to = (kept != places).nonzero().squeeze(1)
        come = kept[to]

        def keep(kinds: Tensor) -> Tensor:
            return kinds[: len(kept)].index_copy_(0, to, kinds.index_select(0, come))

        self.cross = [(keep(keys), keep(values)) for keys, values in self.cross]
        self.past = [(keep(keys), keep(values)) for keys, values in self.past]
        self.ended = keep(self.ended)

    def _make_room(self, rows: int) -> None:
        """Give up the places that no row goes on from, and leave room for the tokens of some calls."""
        hidden = self.hidden.unflatten(0, (self.sentences, rows))
        needed = (hidden == 0).any(1)
        self.taken = int(needed.sum(1).max())
        kept = needed.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : self.taken]
        room = -(-(self.taken + SPARE * rows) // TOKEN_MULTIPLE) * TOKEN_MULTIPLE - self.taken

        def move(tokens: Tensor) -> Tensor:
            places = kept[:, None, :, None].expand(-1, tokens.shape[1], -1, tokens.shape[3])
            return _widened(tokens.gather(2, places), room)  # take_along_dim would look at each index for a sign

        self.past = [(move(keys), move(values)) for keys, values in self.past]
        hidden = F.pad(hidden.gather(2, kept[:, None].expand(-1, rows, -1)), (0, room), value=-torch.inf)
        self.hidden = hidden.flatten(0, 1)


def _widened(tokens: Tensor, room: int) -> Tensor:
    """Zeros behind the tokens (S, h_kv, P, d)."""
    return F.pad(tokens, (0, 0, 0, room))


def _attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d_k) + bias) V: (R, h, d_k), (S, h_kv, L, d_k), (S, h_kv, L, d_v) to (R, h d_v).

    The bias is (R, L), or (S, L) where it is the same for all rows of a sentence.
    """
    sentences, heads, length, width = keys.shape
    count, shared = queries.shape[1], queries.shape[1] != heads
    attended = F.scaled_dot_product_attention(
        queries.to(keys.dtype).view(sentences, -1, count, width).transpose(1, 2),
        keys,
        values,
        attn_mask=bias.view(sentences, 1, -1, length),
        enable_gqa=shared,
    )
    return attended.transpose(1, 2).reshape(queries.shape[0], -1).to(queries.dtype)
