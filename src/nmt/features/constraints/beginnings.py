"""Force the beginnings of hypotheses, for any next-token scorer.

Shapes: B sentences in the batch, R rows as in `NextTokenScorer`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, NextTokenScorer
from nmt.text.special import PAD


def force_prefixes(scorer: NextTokenScorer, prefixes: Sequence[Sequence[int]], device: torch.device) -> NextTokenScorer:
    """Return a scorer under which every sentence begins with its prefix, whose tokens have probability 1."""
    longest = max(map(len, prefixes))
    table = torch.tensor([[*prefix, *[PAD] * (longest - len(prefix))] for prefix in prefixes], device=device)
    sentences = torch.arange(len(prefixes), device=device)  # (R,) the sentence of each row
    length = 0

    def forced(tokens: Tensor, parents: Tensor) -> Tensor:
        nonlocal sentences, length
        scores = scorer(tokens, parents)
        if length < longest:
            sentences = sentences[parents]
            wanted = table[sentences, length][:, None]
            only_wanted = torch.full_like(scores, NEVER).scatter(1, wanted, 0.0)
            scores = scores.where(wanted == PAD, only_wanted)
            length += 1
        return scores

    return forced
