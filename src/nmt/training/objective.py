"""The training objective."""

from torch import nn

from nmt.data.loader import MicroBatch
from nmt.model.interface import TranslationModel
from nmt.text.special import PAD
from nmt.training.loss import Losses, smoothed_cross_entropy


class Objective(nn.Module):
    """The label-smoothed loss of the model, summed over the tokens of a micro-batch."""

    def __init__(self, model: TranslationModel, smoothing: float, loss_rows: int = 0) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.loss_rows = loss_rows

    def forward(self, batch: MicroBatch) -> Losses:
        """Return the losses, summed over the labels of the batch."""
        output, projection, working = self.model.factors(self.model(batch.source, batch.target))
        return smoothed_cross_entropy(
            output,
            projection,
            batch.labels,
            smoothing=self.smoothing,
            ignore=PAD,
            working_projection=working,
            rows=self.loss_rows,
        )
