"""The training objective: the loss over all words, and that of guided attention."""

import torch
from torch import Tensor, nn

from nmt.data.loader import MicroBatch
from nmt.decoding.attention import guided_layer
from nmt.model.attention import Attend, AttentionSpec, Plan, ScoreBias, attention_scores
from nmt.model.backends.chosen import backend
from nmt.model.interface import TranslationModel
from nmt.model.packed import Padding
from nmt.text.special import PAD
from nmt.training.loss import Losses, smoothed_cross_entropy


class Objective(nn.Module):
    """The loss of the model, summed over the tokens of a micro-batch; held-out text has the cross-entropy alone."""

    def __init__(
        self, model: TranslationModel, smoothing: float, *, guided_weight: float = 0.0, sampled_words: int = 0
    ) -> None:
        """See `training.label_smoothing`, `training.guided_weight` and `training.sampled_words`."""
        super().__init__()
        self.model, self.smoothing, self.guided_weight = model, smoothing, guided_weight
        self.sampled_words = sampled_words

    def forward(self, batch: MicroBatch) -> Losses:
        """Return the losses, summed over the labels of the batch."""
        if self.training and self.guided_weight and batch.links and len(batch.links.targets):
            return self._guided(batch)
        return self._cross_entropy(batch)

    def _cross_entropy(self, batch: MicroBatch, plan: Plan | None = None) -> Losses:
        """Return the cross-entropy with smoothed labels (section 5.4 of the paper)."""
        output, projection, working = self.model.vectors.factors(self.model(batch.source, batch.target, plan))
        return smoothed_cross_entropy(
            output,
            projection,
            batch.labels,
            smoothing=self.smoothing,
            ignore=PAD,
            working_projection=working,
            sampled_words=self.sampled_words if self.training and output.device.type == "cpu" else 0,
        )

    def _guided(self, batch: MicroBatch) -> Losses:
        """Add the loss of the head that learns alignments to the cross-entropy (Garg et al., 2019)."""
        projected: list[tuple[Tensor, Tensor]] = []
        losses = self._cross_entropy(batch, recording(backend().attention, batch, projected))
        queries, keys = projected[guided_layer(self.model.config.decoder_depth)]
        attention, links = attention_of_head(queries[:, 0], keys[:, 0], batch), batch.links
        assert links is not None
        # the step that reads a piece learns its links, because it knows which piece it is
        found = attention[links.targets + 1, links.sources]
        guided = self.guided_weight * -(found * links.weights.to(found.dtype)).sum()
        return losses._replace(smoothed=losses.smoothed + guided)


def attention_of_head(queries: Tensor, keys: Tensor, batch: MicroBatch) -> Tensor:
    """Return the logarithm of the attention (Tq, Lk) of a head, given its queries (Tq, d_k) and keys (Tk, d_k)."""
    padded_queries, padded_keys = Padding(batch.target), Padding(batch.source)
    scores = attention_scores(padded_queries.pad(queries[:, None]), padded_keys.pad(keys[:, None]))
    if (ended := batch.source.ended) is not None:  # a sentence without tokens must not give NaN
        scores = scores.masked_fill(ended[:, None, None, :], torch.finfo(scores.dtype).min)
    return padded_queries.unpad(scores.log_softmax(-1))[:, 0]


def recording(plan: Plan, batch: MicroBatch, projected: list[tuple[Tensor, Tensor]]) -> Plan:
    """Return a plan that keeps the queries (Tq, h, d_k) and keys (Tk, h_kv, d_k) of cross-attention of each layer."""

    def choose(spec: AttentionSpec) -> Attend:
        attend = plan(spec)
        if spec.queries is not batch.target or spec.keys is not batch.source:
            return attend

        def record(queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
            projected.append((queries, keys))
            return attend(queries, keys, values, bias)

        return record

    return choose
