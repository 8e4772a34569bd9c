"""Guided alignment (Garg et al., 2019): one head of the decoder's cross-attention learns given word alignments."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.links import Links
from nmt.data.loader import MicroBatch
from nmt.model.attention import Attend, attention_scores
from nmt.model.attention_plan import AttentionSpec, Plan
from nmt.model.padding import Padding
from nmt.model.positions.base import ScoreBias
from nmt.model.word_vectors import Factors
from nmt.training.objective import Watcher


@dataclass(frozen=True, slots=True)
class GuidedHead:
    """The head that learns alignments."""

    layer: int
    """The decoder layer, from 0, whose first head it is."""
    weight: float
    """The weight of its loss."""

    def watch(self, batch: MicroBatch) -> "HeadWatcher | None":
        """See `Term.watch`."""
        return HeadWatcher(self, batch, batch.links) if batch.links and len(batch.links.targets) else None


class HeadWatcher(Watcher):
    """Sees the queries and keys of a head in one forward pass."""

    def __init__(self, head: GuidedHead, batch: MicroBatch, links: Links) -> None:
        self._head, self._batch, self._links = head, batch, links
        self._recorder: ProjectionRecorder

    def plan(self, plan: Plan) -> Plan:
        """See `Watcher.plan`."""
        self._recorder = ProjectionRecorder(plan, self._batch)
        return self._recorder

    def loss(self, outputs: Factors) -> Tensor:
        """Return the weighted loss of the head."""
        head, links = self._head, self._links
        queries, keys = self._recorder.projected[head.layer]
        attention = attention_of_head(queries[:, 0], keys[:, 0], self._batch)
        # The step that reads a piece learns its links, because it knows which piece it is.
        found = attention[links.targets + 1, links.sources]
        return -head.weight * (found * links.weights.to(found.dtype)).sum()


def attention_of_head(queries: Tensor, keys: Tensor, batch: MicroBatch) -> Tensor:
    """Return the logarithm of the attention (Tq, Lk) of a head, given its queries (Tq, d_k) and keys (Tk, d_k)."""
    padded_queries, padded_keys = Padding(batch.target), Padding(batch.source)
    scores = attention_scores(padded_queries.pad(queries[:, None]), padded_keys.pad(keys[:, None]))
    if (ended := batch.source.ended) is not None:  # a sentence without tokens must not give NaN
        scores = scores.masked_fill(ended[:, None, None, :], torch.finfo(scores.dtype).min)
    return padded_queries.unpad(scores.log_softmax(-1))[:, 0]


class ProjectionRecorder:
    """A plan that keeps the queries and keys of cross-attention, of one layer after the other."""

    def __init__(self, plan: Plan, batch: MicroBatch) -> None:
        """Attend as another plan does; attention from the target to the source of `batch` is cross-attention."""
        self.plan, self.batch = plan, batch
        self.projected: list[tuple[Tensor, Tensor]] = []
        """Queries (Tq, h, d_k) and keys (Tk, h_kv, d_k) of each layer."""

    def __call__(self, spec: AttentionSpec) -> Attend:
        """Choose how to attend, and record cross-attention."""
        attend = self.plan(spec)
        is_cross = spec.queries is self.batch.target and spec.keys is self.batch.source
        return self._recording(attend) if is_cross else attend

    def _recording(self, attend: Attend) -> Attend:
        def record(queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
            self.projected.append((queries, keys))
            return attend(queries, keys, values, bias)

        return record
