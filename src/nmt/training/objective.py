"""The training objective: the loss over all words, R-Drop in its place, and the loss of guided attention."""

from torch import nn

from nmt.data.loader import MicroBatch
from nmt.decoding.attention import guided_layer
from nmt.model.backends.chosen import backend
from nmt.model.interface import TranslationModel
from nmt.text.special import PAD
from nmt.training.guided_attention import ProjectionRecorder, guided_loss
from nmt.training.loss import Losses, smoothed_cross_entropy
from nmt.training.r_drop import RDrop, r_drop_loss, twice


class Objective(nn.Module):
    """The loss of the model, summed over the tokens of a micro-batch; held-out text has the cross-entropy alone."""

    def __init__(
        self, model: TranslationModel, smoothing: float, *, r_drop: float = 0.0, guided_weight: float = 0.0
    ) -> None:
        """See `training.label_smoothing`, `training.r_drop` and `training.guided_weight`."""
        super().__init__()
        self.model, self.smoothing, self.r_drop, self.guided_weight = model, smoothing, r_drop, guided_weight

    def forward(self, batch: MicroBatch) -> Losses:
        """Return the losses, summed over the labels of the batch."""
        if self.training and self.r_drop:
            return self._r_drop(batch)
        if self.training and self.guided_weight and batch.links and len(batch.links.targets):
            return self._guided(batch)
        return self._cross_entropy(batch)

    def _cross_entropy(self, batch: MicroBatch, recorder: ProjectionRecorder | None = None) -> Losses:
        """Return the cross-entropy with smoothed labels (section 5.4 of the paper)."""
        output, projection, working = self.model.factors(self.model(batch.source, batch.target, recorder))
        return smoothed_cross_entropy(
            output, projection, batch.labels, smoothing=self.smoothing, ignore=PAD, working_projection=working
        )

    def _r_drop(self, batch: MicroBatch) -> Losses:
        """Return the loss of two passes, which are one pass over every sentence twice."""
        output, projection, working = self.model.factors(self.model(twice(batch.source), twice(batch.target)))
        first, second = output.chunk(2)
        return r_drop_loss(first, second, projection, working, batch.labels, RDrop(self.smoothing, self.r_drop, PAD))

    def _guided(self, batch: MicroBatch) -> Losses:
        """Add the loss of the head that learns alignments to the cross-entropy."""
        recorder = ProjectionRecorder(backend().attention, batch)
        losses = self._cross_entropy(batch, recorder)
        queries, keys = recorder.projected[guided_layer(self.model.config.decoder_depth)]
        guided = self.guided_weight * guided_loss(queries, keys, batch)
        return losses._replace(smoothed=losses.smoothed + guided)
