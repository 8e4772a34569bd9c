"""Layers that training skips at random."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from nmt.model.attention import AttendEncoderOutput
from nmt.model.dropout import thread_generator


def run_or_skip(probability: float, layer: nn.Module, stream: Tensor, *inputs: object) -> Tensor:
    """Return a layer's output (..., d), or its stream if training skips the layer."""
    if layer.training and skips_layer(probability):
        # all layers that attend to the encoder's output may be skipped
        memories = [each.memory for each in inputs if isinstance(each, AttendEncoderOutput)]
        return with_zero_gradients(stream, [*layer.parameters(), *memories])
    output: Tensor = layer(stream, *inputs)
    return output


def skips_layer(probability: float) -> bool:
    """Return whether to skip a layer; the seed of the micro-batch decides, and no device has to be waited for."""
    return float(torch.rand((), generator=thread_generator())) < probability


def with_zero_gradients(stream: Tensor, skipped: Iterable[Tensor]) -> Tensor:
    """Return the same stream (..., d), which depends on the `skipped` tensors so that their gradients are 0.

    Without a gradient, other processes would wait for it, and Adam's averages would not decay.
    """
    zeros = [0 * tensor.reshape(-1)[0] for tensor in skipped if tensor.requires_grad]
    return stream + torch.stack([zero.to(stream.dtype) for zero in zeros]).sum() if zeros else stream
