"""Learned positions (Table 3, row E of the paper)."""

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional as F

from nmt.model.positions.base import Places, Positions


class Learned(Positions):
    """Add a learned vector per position and side to the word vectors."""

    def table_sizes(self) -> Mapping[str, int]:
        """See `Positions.table_sizes`."""
        return {"source": self.config.max_positions, "target": self.config.max_positions}

    def add(self, stream: Tensor, places: Places, table: Tensor | None) -> Tensor:
        """See `Positions.add`."""
        assert table is not None
        return stream + F.embedding(places.positions, table).to(stream.dtype)
