"""The tokens of terms."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.text.special import PAD


def distinct_tokens(terms: Sequence[Sequence[Sequence[int]]], device: torch.device) -> Tensor:
    """Return the different tokens (B, M) in the terms of each sentence, filled up with PAD."""
    distinct = [sorted({token for term in each for token in term}) for each in terms]
    most = max(map(len, distinct))
    return torch.tensor([[*each, *[PAD] * (most - len(each))] for each in distinct], dtype=torch.int64, device=device)
