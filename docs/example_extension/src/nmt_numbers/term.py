"""The confidence penalty (Pereyra et al., 2017) as a term of the objective."""

from torch import Tensor

from nmt.config.schema import Config
from nmt.data.loader import MicroBatch
from nmt.model.word_vectors import Factors
from nmt.text.special import PAD
from nmt.training.objective import Watcher
from nmt_numbers.settings import NumbersTraining


def confidence_penalty(config: Config) -> "ConfidencePenalty | None":
    """Return the term that the settings ask for; None if it is off."""
    weight = config.of(NumbersTraining).confidence_penalty
    return ConfidencePenalty(weight) if weight else None


class ConfidencePenalty:
    """Adds the negative entropy of each prediction, times a weight."""

    columns = ()

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def watch(self, batch: MicroBatch) -> Watcher:
        """See `Term.watch`."""
        return _Entropy(self.weight, batch.labels)


class _Entropy(Watcher):
    def __init__(self, weight: float, labels: Tensor) -> None:
        self.weight, self.labels = weight, labels

    def loss(self, outputs: Factors) -> Tensor:
        """See `Watcher.loss`."""
        rows = outputs.rows[self.labels != PAD]
        scores = (rows @ outputs.projection.to(rows.dtype).T).float().log_softmax(-1)
        return self.weight * (scores.exp() * scores).sum()
