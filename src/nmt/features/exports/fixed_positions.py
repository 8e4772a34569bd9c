"""Position encodings that a table of fixed vectors expresses, whatever their name."""

import torch
from torch import Tensor

from nmt.config.schema import ModelConfig
from nmt.model.positions.base import Places, positions_of


def fixed_table(config: ModelConfig, length: int) -> Tensor | None:
    """Return the vectors (length, d_model) that are added to word vectors; None if positions do anything else."""
    encoding = positions_of(config)
    if encoding.table_sizes() or encoding.rotates or encoding.biases_scores:
        return None
    places = Places(torch.arange(length), length)
    return encoding.add(torch.zeros(length, config.d_model), places, None)
