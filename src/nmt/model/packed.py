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
        self.shape, self.equal_lengths, ended = (stream.sentences, stream.longest), stream.equal_lengths, stream.ended
        self.after_end = None if ended is None else ended[:, None, :, None]  # (B, 1, L, 1)
        if self.equal_lengths:
            return
        lengths, device = stream.lengths, stream.tokens.device
        # pad with the sentence's own last token: its values do not matter, and it needs no extra row
        places = torch.minimum(torch.arange(stream.longest, device=device), lengths[:, None] - 1)
        self.tokens = (stream.offsets[:-1, None] + places).flatten()
        sentences = torch.arange(stream.sentences, device=device)
        sentence = torch.repeat_interleave(sentences, lengths, output_size=len(stream.tokens))
        self.rows = sentence * stream.longest + stream.positions

    def pad(self, heads: Tensor) -> Tensor:
        """(T, h, d) to (B, h, L, d); after a sentence's end its last token is repeated."""
        return cast(Tensor, _Moved.apply(heads, self, True))  # type: ignore[no-untyped-call]

    def unpad(self, block: Tensor) -> Tensor:
        """(B, h, L, d) to (T, h, d)."""
        return cast(Tensor, _Moved.apply(block, self, False))  # type: ignore[no-untyped-call]

    def _block(self, heads: Tensor) -> Tensor:
        block = heads if self.equal_lengths else heads.index_select(0, self.tokens)
        return block.view(*self.shape, *heads.shape[1:]).transpose(1, 2).contiguous()

    def _stream(self, block: Tensor) -> Tensor:
        heads = block.transpose(1, 2).flatten(0, 1)
        return heads if self.equal_lengths else heads.index_select(0, self.rows)


class _Moved(torch.autograd.Function):
    """Moves rows into a padded block, or back; the gradient moves the other way."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, padding: Padding, to_block: bool) -> Tensor:
        ctx.padding, ctx.to_block = padding, to_block
        return padding._block(rows) if to_block else padding._stream(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        padding: Padding = ctx.padding
        if ctx.to_block:
            return padding._stream(gradient), None, None
        block = padding._block(gradient)
        return block if padding.after_end is None else block.masked_fill_(padding.after_end, 0), None, None
