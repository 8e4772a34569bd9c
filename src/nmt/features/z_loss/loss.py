"""The z-loss as a term of the objective."""

from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nmt.config.schema import Config
from nmt.data.loader import MicroBatch
from nmt.features.z_loss.settings import ZLossTraining
from nmt.model.kernels.backend import sum_dtype
from nmt.model.word_vectors import Factors
from nmt.text.special import PAD
from nmt.training.loss import rows_per_chunk
from nmt.training.objective import Watcher


def z_loss(config: Config) -> "ZLoss | None":
    """Return the term that the settings ask for; None if it is off."""
    weight = config.of(ZLossTraining).z_loss
    return ZLoss(weight) if weight else None


class ZLoss:
    """Adds weight * (log Z)² per label, where Z is the denominator of the softmax."""

    columns = ()

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def watch(self, batch: MicroBatch) -> Watcher:
        """See `Term.watch`."""
        return _Denominators(self.weight, batch.labels)


class _Denominators(Watcher):
    def __init__(self, weight: float, labels: Tensor) -> None:
        self.weight, self.labels = weight, labels

    def loss(self, outputs: Factors) -> Tensor:
        """See `Watcher.loss`: the logits of a chunk of rows at a time are in memory."""
        rows = outputs.rows[self.labels != PAD]
        projection = outputs.projection.to(rows.dtype)
        size = rows_per_chunk(rows, len(projection))
        squares = [checkpoint(_squares, chunk, projection, use_reentrant=False) for chunk in rows.split(size)]
        total: Tensor = sum(squares, rows.new_zeros((), dtype=outputs.projection.dtype))
        return self.weight * total


def _squares(rows: Tensor, projection: Tensor) -> Tensor:
    """Return the sum of (log Z)² over rows."""
    logits = F.linear(rows, projection)
    return logits.to(sum_dtype(logits)).logsumexp(-1).square().sum()
