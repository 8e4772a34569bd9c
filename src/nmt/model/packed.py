"""Packed streams: the tokens of many sentences one after the other. Padded blocks exist only inside attention."""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packed:
    """The tokens of several sentences, concatenated.

    T is the number of tokens of all sentences together, B the number of sentences.
    """

    tokens: Tensor
    """(T,) int64 word pieces."""
    positions: Tensor
    """(T,) int64 position of each token in its sentence, from 0."""
    offsets: Tensor
    """(B + 1,) int32: sentence b is tokens[offsets[b]:offsets[b + 1]]. The last sentences may have no tokens."""
    longest: int
    """No sentence is longer than this."""

    @classmethod
    def from_lengths(cls, tokens: Tensor, lengths: Tensor) -> "Packed":
        """Pack `tokens` (T,), already concatenated, given each sentence's length (B,)."""
        ends = lengths.cumsum(0)
        starts = torch.repeat_interleave(ends - lengths, lengths)
        positions = torch.arange(len(tokens), device=tokens.device) - starts
        offsets = torch.cat([ends.new_zeros(1), ends]).to(torch.int32)
        return cls(tokens, positions, offsets, int(lengths.max()))

    @classmethod
    def from_sentences(cls, sentences: list[list[int]]) -> "Packed":
        """Pack sentences given as lists of word pieces."""
        tokens = torch.tensor([token for sentence in sentences for token in sentence])
        return cls.from_lengths(tokens, torch.tensor([len(sentence) for sentence in sentences]))

    @property
    def sentences(self) -> int:
        """The number of sentences, B."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """(B,) int32 length of each sentence."""
        return self.offsets.diff()

    @property
    def equal_lengths(self) -> bool:
        """Whether all sentences have the same length."""
        return len(self.tokens) == self.sentences * self.longest

    @property
    def ended(self) -> Tensor | None:
        """(B, longest) boolean: True after a sentence's end; None if all sentences have the same length."""
        if self.equal_lengths:
            return None
        return torch.arange(self.longest, device=self.tokens.device) >= self.lengths[:, None]

    def pinned(self) -> "Packed":
        """Return the same stream in page-locked memory."""
        return Packed(self.tokens.pin_memory(), self.positions.pin_memory(), self.offsets.pin_memory(), self.longest)

    def to(self, device: torch.device) -> "Packed":
        """Return the same stream on another device."""
        tokens, positions, offsets = (
            tensor.to(device, non_blocking=device.type == "cuda")
            for tensor in (self.tokens, self.positions, self.offsets)
        )
        return Packed(tokens, positions, offsets, self.longest)


class Padding:
    """Moves the rows of a packed stream into a padded block and back. What padding contains gets no gradient."""

    def __init__(self, stream: Packed) -> None:
        self.shape = (stream.sentences, stream.longest)
        self.equal_lengths = stream.equal_lengths
        ended = stream.ended
        self.after_end = None if ended is None else ended[:, None, :, None]
        """Boolean (B, 1, L, 1): True after a sentence's end; None if all sentences have the same length."""
        if self.equal_lengths:
            return
        lengths, places = stream.lengths, torch.arange(stream.longest, device=stream.tokens.device)
        starts = stream.offsets[:-1]
        # pad with the sentence's own last token: its values do not matter, and it needs no extra row
        self.tokens = (starts[:, None] + torch.minimum(places, lengths[:, None] - 1)).flatten()
        sentence = torch.repeat_interleave(
            torch.arange(stream.sentences, device=stream.tokens.device), lengths, output_size=len(stream.tokens)
        )
        self.rows = sentence * stream.longest + stream.positions

    def pad(self, heads: Tensor) -> Tensor:
        """(T, h, d) to (B, h, L, d); after a sentence's end its last token is repeated."""
        return cast(Tensor, _Pad.apply(heads, self))  # type: ignore[no-untyped-call]

    def unpad(self, block: Tensor) -> Tensor:
        """(B, h, L, d) to (T, h, d)."""
        return cast(Tensor, _Unpad.apply(block, self))  # type: ignore[no-untyped-call]

    def block_of(self, heads: Tensor) -> Tensor:
        """`pad` without a gradient."""
        block = heads if self.equal_lengths else heads.index_select(0, self.tokens)
        return block.view(*self.shape, *heads.shape[1:]).transpose(1, 2).contiguous()

    def stream_of(self, block: Tensor) -> Tensor:
        """`unpad` without a gradient."""
        heads = block.transpose(1, 2).flatten(0, 1)
        return heads if self.equal_lengths else heads.index_select(0, self.rows)


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return padding.block_of(heads)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padding: Padding = ctx.padding
        return padding.stream_of(gradient), None


class _Unpad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return padding.stream_of(block)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padding: Padding = ctx.padding
        block = padding.block_of(gradient)
        return block if padding.after_end is None else block.masked_fill_(padding.after_end, 0), None
