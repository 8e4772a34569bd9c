"""Guided alignment (Garg et al., 2019): one head of the decoder's cross-attention learns given word alignments."""

import torch
from torch import Tensor

from nmt.data.loader import MicroBatch
from nmt.model.attention import Attend, AttentionSpec, Plan, ScoreBias, attention_scores
from nmt.model.packed import Padding


def guided_loss(queries: Tensor, keys: Tensor, batch: MicroBatch) -> Tensor:
    """Return the loss of the first head of a layer, given its queries (Tq, h, d_k) and keys (Tk, h_kv, d_k)."""
    links = batch.links
    assert links is not None
    attention = attention_of_head(queries[:, 0], keys[:, 0], batch)
    # the step that reads a piece learns its links, because it knows which piece it is
    found = attention[links.targets + 1, links.sources]
    return -(found * links.weights.to(found.dtype)).sum()


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
