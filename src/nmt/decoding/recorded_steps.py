"""Steps of the decoder that are recorded as CUDA graphs, so that a GPU need not wait for the processor.

A step of the paper's base model starts about a hundred operations, which takes the processor several times as long as
it takes a fast GPU to compute them. A graph starts them all.
"""

import torch
from torch import Tensor

from nmt.compute.graphs import GraphRecorder, explaining_failure
from nmt.decoding.beam import NextTokenScorer
from nmt.model.kv_cache import KVCache

TOLERANCE = 1e-2
"""The largest difference of scores, absolute and relative, between a step and its replay."""


class RecordedScorer:
    """Scores the next tokens with a model, and replays its step as long as the step stays in the same memory.

    The first step in new memory runs without a graph. It also prepares what cannot be recorded: kernels and tables.
    """

    def __init__(self, scorer: NextTokenScorer, cache: KVCache, recorder: GraphRecorder) -> None:
        self._scorer, self._cache, self._recorder = scorer, cache, recorder
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tokens = self._parents = self._scores = torch.empty(0)

    def __call__(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """See `NextTokenScorer`; the next call overwrites the scores."""
        if not self._cache.fits(len(tokens)):
            self._graph = None
            return self._scorer(tokens, parents)
        if self._graph is None:
            self._tokens, self._parents = (each.to(self._cache.device, copy=True) for each in (tokens, parents))
            with explaining_failure("set runtime.cuda_graphs=false"):
                return self._recorded()
        self._tokens.copy_(tokens, non_blocking=True)
        self._parents.copy_(parents, non_blocking=True)
        self._graph.replay()
        self._cache.length += 1  # the graph counts on the device only
        return self._scores

    def _recorded(self) -> Tensor:
        """Record a step, and run it; the first one of all must give the scores of the step itself."""
        expected = None
        if not self._recorder.verified:
            with self._cache.trial_step():
                expected = self._scorer(self._tokens, self._parents)
        self._graph = self._recorder.record(self._record)
        self._graph.replay()
        if expected is not None and not torch.allclose(self._scores, expected, TOLERANCE, TOLERANCE, equal_nan=True):
            raise RuntimeError("a replay computes other scores than the step itself")
        self._recorder.verified = True
        return self._scores

    def _record(self) -> None:
        self._scores = self._scorer(self._tokens, self._parents)
