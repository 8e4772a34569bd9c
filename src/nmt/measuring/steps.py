"""Training steps that are measured: batches, updates that count, waiting for the device, and peak memory."""

import gc
import resource
import sys
from collections.abc import Iterator, Sequence

import torch

from nmt.compute import distributed
from nmt.data.batching import Batching
from nmt.data.loader import DataPosition, GlobalBatch, global_batches
from nmt.data.store import Pairs
from nmt.training.trainer import Trainer


def measured_batches(
    trainer: Trainer, pairs: Pairs, *, seed: int = 1, columns: Sequence[str] = ()
) -> Iterator[GlobalBatch]:
    """Yield global batches of a text, from its first step on, for this process of those that train together."""
    return global_batches(
        pairs,
        Batching.of(trainer.config, seed),
        device_tokens=trainer.config.device_tokens,
        start=DataPosition(),
        rank=distributed.rank(),
        devices=distributed.world_size(),
        threads=trainer.gradient.concurrency,
        shapes=trainer.shapes(trainer.config.device_tokens),
        columns=columns,
    )


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes: on the GPU, or of the whole process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def update(trainer: Trainer, batch: GlobalBatch) -> None:
    """Train on a batch; in fp16, repeat the step until the gradient of the scaled loss does not overflow."""
    trainer.update(batch)
    while trainer.loss_scale is not None and float(trainer.loss_scale.scale) < float(trainer.loss_scale.last_scale):
        trainer.update(batch)  # nothing was changed but the scale


def free_memory() -> None:
    """Return the memory of what is no longer used to the GPU."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
