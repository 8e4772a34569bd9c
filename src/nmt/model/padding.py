"""Padded blocks, which exist only inside attention."""

import torch
from torch import Tensor

from nmt.model.packed import Packed


class Padding:
    """Moves the rows of a packed stream into a padded block and back."""

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
        block = heads if self.equal_lengths else heads.index_select(0, self.tokens)
        return block.view(*self.shape, *heads.shape[1:]).transpose(1, 2).contiguous()

    def unpad(self, block: Tensor) -> Tensor:
        """(B, h, L, d) to (T, h, d)."""
        heads = block.transpose(1, 2).flatten(0, 1)
        return heads if self.equal_lengths else heads.index_select(0, self.rows)
