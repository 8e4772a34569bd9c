"""What Muon costs, for estimates."""

from nmt.config.schema import TrainingConfig
from nmt.estimate.cost import Cost
from nmt.estimate.operation import FLOAT32_BYTES, Operation, passes

ITERATIONS = 4
"""Newton-Schulz iterations."""


def cost(training: TrainingConfig) -> Cost:
    """Return what Muon costs compared with Adam: one number less per weight of a layer, and its matrix products."""
    return Cost(layer_state=-1, matrix_update=_update) if training.optimizer == "muon" else Cost()


def _update(short: int, long: int) -> list[Operation]:
    """Return the update of a matrix: running mean, Newton-Schulz iterations of three products in bf16, and the step."""
    gram, product = 2 * short * short * long, 2 * short**3
    matrix, square = 2 * short * long, 2 * short * short
    iteration = [
        Operation(matrix + square, gram),
        Operation(2 * square, product),
        Operation(2 * matrix + square, gram),
    ]
    return [*passes(short * long, FLOAT32_BYTES, 3, 3, 2, 1, 1, 2, 3), *(ITERATIONS * iteration)]
