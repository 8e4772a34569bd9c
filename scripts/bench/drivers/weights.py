"""A trained checkpoint of this project, for drivers that convert its weights."""

from pathlib import Path

from protocol import Job
from safetensors.torch import load_file
from torch import Tensor

from nmt.config.schema import ModelConfig


def read_weights(job: Job) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The model's settings, and its weights by our names."""
    return ModelConfig(**job["model"]), load_file(Path(job["checkpoint"]) / "model.safetensors")
