"""Measure what a training step takes on this machine, or on those that train together."""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine, is_out_of_memory
from nmt.config.tree import Config
from nmt.data.batches import Batching
from nmt.data.loader import DataPosition, GlobalBatch, global_batches
from nmt.data.store import Pairs
from nmt.errors import CommonError
from nmt.training.build import build_trainer
from nmt.training.memory_check import tokens_that_fit
from nmt.training.trainer import Trainer

WARM_UP_STEPS = 2
MAX_STEPS, MAX_SECONDS = 20, 4.0
"""Limits of the steps that are timed; one is timed in any case."""


def seconds_per_step(
    config: Config,
    machine: Machine,
    text: Pairs,
    vocabularies: tuple[int, int],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the mean seconds of the first steps of a run on its own text, after some steps to warm up.

    It is infinite if the memory is too small for a step. All processes that train together must call this, and all
    return the same.
    """
    try:
        return _timed(config, machine, text, vocabularies, clock)
    except CommonError:  # nothing fits
        pass
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    finally:  # after the block, because an error keeps the memory of its frames
        free_memory()
    return math.inf


def _timed(
    config: Config, machine: Machine, text: Pairs, vocabularies: tuple[int, int], clock: Callable[[], float]
) -> float:
    trainer = build_trainer(config, machine, vocabularies)
    # as training does: one process may have too little memory for steps that others wait for, or Linux may kill it
    tokens = tokens_that_fit(trainer, text, longest_sentence=config.data.max_pieces + 1)
    trainer.config = replace(trainer.config, device_tokens=tokens)
    batches = measured_batches(trainer, text, seed=config.seed, with_links=trainer.needs_links)
    started, seconds, step = clock(), 0.0, 0
    with closing(batches):  # type: ignore[type-var] # it is a generator
        for step in count(1 - WARM_UP_STEPS):
            update(trainer, next(batches))
            wait(machine.device)
            if step == 0:
                started = clock()
            seconds = clock() - started
            if distributed.highest(step >= MAX_STEPS or (step > 0 and seconds >= MAX_SECONDS)):
                break
    return max(distributed.gather_objects(seconds / step))


def measured_batches(
    trainer: Trainer, pairs: Pairs, *, seed: int = 1, with_links: bool = False
) -> Iterator[GlobalBatch]:
    """Yield global batches of a text, from its first step on, for this process of those that train together."""
    return global_batches(
        pairs,
        Batching.of(trainer.config, seed),
        device_tokens=trainer.config.device_tokens,
        start=DataPosition(),
        rank=distributed.rank(),
        devices=distributed.world_size(),
        with_words=trainer.gradient.needs_words,
        threads=trainer.gradient.concurrency,
        shapes=trainer.shapes(trainer.config.device_tokens),
        with_links=with_links,
    )


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
