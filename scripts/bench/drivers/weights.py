"""Read a checkpoint of nmt, for drivers that convert its weights."""

from pathlib import Path

from protocol import Job
from safetensors.torch import load_file
from torch import Tensor

from nmt.config.model import ModelConfig


def read_weights(job: Job) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Return the model's settings, and its weights by their names in nmt."""
    return ModelConfig(**job["model"]), load_file(Path(job["checkpoint"]) / "model.safetensors")
