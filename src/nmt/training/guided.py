"""Guided alignment (Garg et al., 2019): one head of the decoder's cross-attention learns given word alignments."""

import math
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import Tensor

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.links import Links
from nmt.data.loader import MicroBatch
from nmt.model.attention import Attend
from nmt.model.attention_plan import AttentionSpec, Plan
from nmt.model.interface import TranslationModel
from nmt.model.kernels.backend import sum_dtype
from nmt.model.packed import Packed
from nmt.model.padding import Padding
from nmt.model.positions.base import ScoreBias


class EncoderDecoder(Protocol):
    """A model whose decoder attends to an encoder."""

    def encode(self, source: Packed) -> Tensor:
        """Return the encoder's output (T, d_model)."""

    def decode(self, source: Packed, memory: Tensor, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the decoder's output (T, d_model), which attends as the plan says."""


@dataclass(frozen=True, slots=True)
class GuidedHead:
    """The head that learns alignments."""

    layer: int
    """The decoder layer, from 0."""
    head: int
    """From 0."""
    reads: bool
    """Whether the step that reads a piece learns its links, and not the one that predicts it."""
    weight: float
    """The weight of its loss."""

    @classmethod
    def chosen(cls, training: TrainingConfig, model: ModelConfig) -> "GuidedHead | None":
        """Return the head that the settings choose; None if none learns alignments."""
        if not training.guided_weight:
            return None
        layer = training.guided_decoder_layer(model.decoder_depth)
        reads = training.guided_state == "input"
        return cls(layer - 1, training.guided_head - 1, reads, training.guided_weight)

    def decode(self, model: TranslationModel, batch: MicroBatch, links: Links) -> tuple[Tensor, Tensor]:
        """Return the decoder's output (T, d_model), and the weighted loss of the head."""
        recorder = ProjectionRecorder(model.plan, batch.source)
        with_encoder = cast(EncoderDecoder, model)  # the settings refuse others
        output = with_encoder.decode(batch.source, with_encoder.encode(batch.source), batch.target, recorder)
        queries, keys = recorder.projected[self.layer]
        shared_by = queries.shape[1] // keys.shape[1]  # query heads per key head
        log_attention = attention_of_head(queries[:, self.head], keys[:, self.head // shared_by], batch)
        found = log_attention[links.targets + int(self.reads), links.sources]
        return output, -self.weight * (found * links.weights.to(found.dtype)).sum()


def attention_of_head(queries: Tensor, keys: Tensor, batch: MicroBatch) -> Tensor:
    """Return the logarithm of the attention (Tq, Lk) of a head, given its queries (Tq, d_k) and keys (Tk, d_k)."""
    padded_queries, padded_keys = Padding(batch.target), Padding(batch.source)
    scores = torch.matmul(padded_queries.pad(queries[:, None]), padded_keys.pad(keys[:, None]).transpose(-2, -1))
    scores = scores.to(sum_dtype(scores)) / math.sqrt(queries.shape[-1])
    if (ended := batch.source.ended) is not None:  # a sentence without tokens must not give NaN
        scores = scores.masked_fill(ended[:, None, None, :], torch.finfo(scores.dtype).min)
    return padded_queries.unpad(scores.log_softmax(-1))[:, 0]


class ProjectionRecorder:
    """A plan that keeps the queries and keys of cross-attention, of one layer after the other."""

    def __init__(self, plan: Plan, source: Packed) -> None:
        """Attend as another plan does; attention to `source` is cross-attention."""
        self.plan, self.source = plan, source
        self.projected: list[tuple[Tensor, Tensor]] = []
        """Queries (Tq, h, d_k) and keys (Tk, h_kv, d_k) of each layer."""

    def __call__(self, spec: AttentionSpec) -> Attend:
        """Choose how to attend, and record cross-attention."""
        attend = self.plan(spec)
        return self._recording(attend) if spec.keys is self.source else attend

    def _recording(self, attend: Attend) -> Attend:
        def record(queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
            self.projected.append((queries, keys))
            return attend(queries, keys, values, bias)

        return record
