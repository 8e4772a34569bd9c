"""Errors of torch.compile, of which the machine is the cause more often than the model."""

import sys
from pathlib import Path

import torch


def reason_not_to_compile(error: Exception) -> str | None:
    """Return in one line why PyTorch could not compile a model; None for errors of another kind."""
    dynamo = sys.modules.get("torch._dynamo.exc")  # it takes seconds to import, and has compiled nothing until then
    if dynamo is None or not isinstance(error, dynamo.TorchDynamoException):
        return None
    words, _, output = str(error).partition("\nOutput:\n")
    lines = [*words.strip().splitlines()[:1], *output.strip().splitlines()[:1]]
    if " " in str(Path(torch.__file__).parent):
        lines.append("PyTorch cannot compile for a CPU if the path of its own folder has a space")
    return "; ".join(lines)
