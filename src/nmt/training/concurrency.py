"""How many micro-batches a process computes in parallel."""

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.threads import concurrent_workers
from nmt.config.training import TrainingConfig

MIN_MICRO_BATCH_TOKENS = 512
"""A micro-batch with fewer source or target tokens is not worth a thread with its own copy of the gradient."""


def concurrency_of(config: TrainingConfig, machine: Machine, parallel: int) -> int:
    """Return how many micro-batches a process computes in parallel: one, unless a single process trains on a CPU.

    `parallel` is `runtime.parallel`.
    """
    if machine.device.type != "cpu" or distributed.world_size() > 1:
        return 1
    return parallel or concurrent_workers(
        min(config.device_tokens or config.batch_tokens, config.batch_tokens) // MIN_MICRO_BATCH_TOKENS
    )
