"""The search of the page in Python: our own beam search with onnxruntime, one sentence at a time."""

import numpy as np
import torch
from torch import Tensor

from nmt.decoding.beam import Hypothesis, NextTokenScorer, beam_search
from nmt.decoding.constraints import UNCONSTRAINED, Constraints
from nmt.features.exports.onnx_engine import OnnxEngine


class WebEngine(OnnxEngine):
    """Searches sentence by sentence as the page does: numbers in int8 depend on the other rows of a batch."""

    name = "web"

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        assert all(each == UNCONSTRAINED for each in constraints)
        return [self._search(source) for source in sources]

    def _search(self, source: list[int]) -> list[Hypothesis]:
        limit = min(len(source) + self.config.extra_length, self.max_target_tokens)
        search = self.config.search
        (found,) = beam_search(
            self._scorer(source), torch.tensor([limit]), beam=search.beam, alpha=search.alpha, nbest=search.nbest
        )
        return found

    def _scorer(self, source: list[int]) -> NextTokenScorer:
        """Return the scorer of the next tokens of a sentence, which keeps the cache."""
        encoded, cache, begun = self._encoded([source]), self._empty_cache(1), False

        def scorer(tokens: Tensor, parents: Tensor) -> Tensor:
            nonlocal cache, begun
            rows = parents.numpy()
            given = {name: each[np.zeros_like(rows)] for name, each in encoded.items()}
            taken = {name: each[rows] for name, each in cache.items()}
            scores, cache = self._decode(given, tokens.numpy()[:, None], taken, use_cache=begun)
            begun = True
            return torch.from_numpy(scores[:, -1])

        return scorer
