"""The time of a training step on a device, by formula."""

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.estimate.hardware import Device
from nmt.estimate.operation import Part
from nmt.estimate.operations import Batch, extra_operations, step_operations
from nmt.estimate.parameters import ParameterCounts


def step_seconds(
    model: ModelConfig,
    training: TrainingConfig,
    size: ParameterCounts,
    vocabularies: tuple[int, int],
    batch: Batch,
    device: Device,
    micro_batches: int = 1,
) -> dict[Part, float]:
    """Return the seconds of each part of a step with this many equal micro-batches.

    `vocabularies` are the sizes of those of source and target.
    """
    seconds = dict.fromkeys(Part, 0.0)
    for each in step_operations(model, size, vocabularies, batch, micro_batches):
        seconds[each.part] += device.seconds(each.bytes, each.flops, batch.precision)
    products = "fp32" if batch.precision == "fp16" else batch.precision  # fp16's range is too small for an update's
    for each in extra_operations(model, training, size):
        seconds[each.part] += device.seconds(each.bytes, each.flops, products)
    return seconds
