"""The training objective."""

from torch import Tensor, nn

from nmt.data.loader import MicroBatch
from nmt.model.interface import TranslationModel
from nmt.text.special import PAD
from nmt.training.guided import GuidedHead
from nmt.training.loss import Losses, smoothed_cross_entropy
from nmt.training.r_drop import RDrop, r_drop_loss


class Objective(nn.Module):
    """The label-smoothed loss of the model, summed over the tokens of a micro-batch."""

    def __init__(
        self,
        model: TranslationModel,
        smoothing: float,
        loss_rows: int = 0,
        r_drop: float = 0.0,
        guided: GuidedHead | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.loss_rows = loss_rows
        self.r_drop = r_drop
        self.guided = guided

    def forward(self, batch: MicroBatch) -> Losses:
        """Return the losses, summed over the labels of the batch."""
        if self.training and self.r_drop:
            return self._forward_twice(batch)
        if self.training and self.guided is not None and batch.links is not None:
            output, alignment_loss = self.guided.decode(self.model, batch, batch.links)
            losses = self._losses(output, batch)
            return losses._replace(smoothed=losses.smoothed + alignment_loss)
        return self._losses(self.model(batch.source, batch.target), batch)

    def _losses(self, output: Tensor, batch: MicroBatch) -> Losses:
        output, projection, working = self.model.factors(output)
        return smoothed_cross_entropy(
            output,
            projection,
            batch.labels,
            smoothing=self.smoothing,
            ignore=PAD,
            working_projection=working,
            rows=self.loss_rows,
        )

    def _forward_twice(self, batch: MicroBatch) -> Losses:
        """Return the losses of two passes, which are one pass over every sentence twice."""
        output, projection, working = self.model.factors(self.model(batch.source.twice(), batch.target.twice()))
        settings = RDrop(self.smoothing, self.r_drop, PAD, self.loss_rows)
        first, second = output.chunk(2)
        return r_drop_loss(first, second, projection, working, batch.labels, settings)
