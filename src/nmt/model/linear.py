"""The linear layers of the model."""

from collections.abc import Mapping

from torch import Tensor, nn

from nmt.model.backends.chosen import backend

Copies = Mapping[str, Tensor]
"""Copies of a module's parameters in another precision, by the names of the parameters (`model.working_weights`)."""


class Linear(nn.Linear):
    """x W^T + b, as the backend of this process computes it."""

    copies: Copies | None = None

    def forward(self, rows: Tensor) -> Tensor:
        """(T, d_in) to (T, d_out)."""
        return backend().linear(rows, self)
