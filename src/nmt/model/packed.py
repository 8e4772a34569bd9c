"""Packed streams: the tokens of many sentences one after the other, without padding between them."""

from dataclasses import dataclass

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
