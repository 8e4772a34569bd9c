"""Whether a run fits in the memory of a device, and how many devices must divide the weights if it does not."""

import math
from collections.abc import Callable
from typing import NamedTuple

from nmt.config.schema import ModelConfig
from nmt.estimate.memory import ActivationStorage, Memory
from nmt.estimate.operation import FLOAT32_BYTES
from nmt.estimate.parameters import ParameterCounts
from nmt.model.build import architecture_of

MAX_DEVICES = 1024
"""The most devices that are considered."""
GATHERED_LAYERS = 2
"""Layers whose weights a device holds at a time: the one that it computes, and the next one."""


class MemoryNeed(NamedTuple):
    """What a run needs of devices of a certain memory."""

    fits: bool
    """Whether it fits as it is set."""
    fits_in_small_batches: bool
    """Whether it fits on one device with a whole copy of the model, if micro-batches have a single sentence."""
    devices: int
    """The smallest number of devices that can divide the weights between them; 0 if there is none."""


def memory_need(
    limit: float,
    used: int,
    smallest: int,
    divided: Callable[[int], int],
) -> MemoryNeed:
    """Return what a run needs.

    Args:
        limit: The memory of a device in bytes.
        used: What the run takes of it as it is set.
        smallest: What it takes with a whole copy of the model and micro-batches of a single sentence.
        divided: Returns what it takes if that many devices divide the weights.
    """
    fitting = (count for count in range(2, MAX_DEVICES + 1) if divided(count) <= limit)
    return MemoryNeed(used <= limit, smallest <= limit, next(fitting, 0))


def divided_memory(
    whole: Memory, config: ModelConfig, size: ParameterCounts, on: ActivationStorage, devices: int
) -> Memory:
    """Return the memory per device if devices divide weights, gradients and averages.

    A device also holds gathered weights in the precision of training: those outside of layers with their gradient, two
    layers, and the gradient of one. Gradients are added up in float32, those of a layer at a time.

    Args:
        whole: The memory of a device with a whole copy of the model.
        config: Settings of the model.
        size: Its parameters.
        on: How the device stores activations.
        devices: The number of devices.
    """
    layer = largest_layer(config, size)
    part = math.ceil(FLOAT32_BYTES * size.total / devices)
    added_up = FLOAT32_BYTES * max(layer, size.embedding)
    return whole._replace(
        parameters=part + on.width * (size.embedding + GATHERED_LAYERS * layer),
        gradients=part + on.width * (size.embedding + layer) + added_up,
        optimizer=math.ceil(whole.optimizer / devices),
    )


def validation_bytes(whole: Memory, size: ParameterCounts, devices: int) -> int:
    """Return the memory per device during validation if devices divide the weights: each gathers the whole model."""
    parts = math.ceil((FLOAT32_BYTES * size.total + whole.optimizer) / devices)
    return whole.parameters + parts + whole.process


def largest_layer(config: ModelConfig, size: ParameterCounts) -> int:
    """Return the number of parameters of the largest layer."""
    stacks, parts = architecture_of(config).stacks(config), {"encoder": size.encoder, "decoder": size.decoder}
    return max(math.ceil(parts[stack.part] / stack.layers) for stack in stacks)
