"""What features add to the cost of a step, for estimates."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nmt.config.schema import TrainingConfig
from nmt.discovery import features, imported
from nmt.estimate.operation import Operation


class Cost(NamedTuple):
    """What a feature adds to the cost of a step."""

    passes: int = 1
    """How often it computes each micro-batch at the same time."""
    copies: int = 0
    """Copies of all weights, in float32, that it keeps on the device."""
    traffic: tuple[int, ...] = ()
    """For each of its operations on all weights, how many float32 numbers it reads and writes per weight."""
    layer_state: int = 0
    """Numbers per weight of the layers that the optimizer keeps more than Adam's two; negative if it keeps fewer."""
    matrix_update: Callable[[int, int], Sequence[Operation]] | None = None
    """The operations of an update of a layer's matrix, in addition to Adam's, given its shorter and its longer side."""


def costs(training: TrainingConfig) -> Iterator[Cost]:
    """Yield the costs of the features that the settings use."""
    for feature in features().values():
        if feature.cost:
            yield imported(feature.cost)(training)


def passes_per_batch(training: TrainingConfig) -> int:
    """Return how often a step computes each micro-batch at the same time."""
    return max((cost.passes for cost in costs(training)), default=1)


def copies_of_weights(training: TrainingConfig) -> int:
    """Return how many copies of all weights features keep on the device."""
    return sum(cost.copies for cost in costs(training))


def state_per_layer_weight(training: TrainingConfig) -> int:
    """Return how many numbers the optimizer keeps per weight of the layers in addition to Adam's two."""
    return sum(cost.layer_state for cost in costs(training))
