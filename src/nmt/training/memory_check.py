"""Whether model and largest batch fit in memory, found out before the first step rather than hours later."""

import gc
import math

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine, is_out_of_memory, memory_of
from nmt.config.schema import ModelConfig
from nmt.data.loader import MicroBatch, largest_micro_batches
from nmt.data.store import PairStore
from nmt.errors import CommonError
from nmt.estimate.memory import activation_storage, training_memory
from nmt.estimate.parameters import count_parameters
from nmt.training.trainer import Trainer

BYTES = 16
"""Of a parameter while it is trained: itself, its gradient and Adam's two means."""


def check_model_size(config: ModelConfig, source_vocabulary: int, target_vocabulary: int, machine: Machine) -> None:
    """Refuse a model that is larger than all memory before it is built."""
    parameters, memory = count_parameters(config, source_vocabulary, target_vocabulary).total, memory_of(machine.device)
    if BYTES * parameters > memory:
        raise CommonError(
            f"a model of {parameters:,} parameters takes {BYTES * parameters // 10**9:,} GB to train, but {machine} "
            f"has a memory of {memory // 10**9:,} GB: lower model.layers, model.d_model, model.d_ff or model.heads"
        )


def check_memory(trainer: Trainer, store: PairStore, least: int) -> None:
    """Try the largest batch; where it does not fit, say how many tokens would. All processes agree.

    Args:
        trainer: What will train; it is left as it was.
        store: The training text.
        least: Tokens of the longest sentence, which a device must hold.
    """
    config = trainer.config
    tokens = share = math.ceil(config.batch_tokens / distributed.world_size())
    if config.device_tokens:
        tokens = min(config.device_tokens, share)
    if _fits(trainer, store, config.device_tokens):
        return
    smaller = tokens // 2
    while smaller >= least and not _fits(trainer, store, smaller):
        smaller //= 2
    remedy = (
        f"training.device_tokens={smaller} would, with the same batches: the rest is accumulated"
        if smaller >= least
        else "nor does much less: choose a smaller model, or lower data.max_pieces"
    )
    raise CommonError(f"{tokens:,} tokens a side at once do not fit in the memory of {trainer.machine}; {remedy}")


def _fits(trainer: Trainer, store: PairStore, device_tokens: int) -> bool:
    """Whether the largest batches, so divided, fit on all devices."""
    config = trainer.config
    batches = largest_micro_batches(
        store,
        batch_tokens=config.batch_tokens,
        device_tokens=device_tokens,
        seed=trainer.seed,
        devices=distributed.world_size(),
        threads=trainer.parts,
    )
    full = 0
    try:
        for batch in batches:
            if _is_hopeless(trainer, batch):
                raise MemoryError
            trainer.try_out(batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        full = 1
    if full and trainer.machine.device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
    return not distributed.highest(full)


def _is_hopeless(trainer: Trainer, batch: MicroBatch) -> bool:
    """Whether a batch takes more than all memory of a CPU: a system that has too little kills without a word."""
    if trainer.machine.device.type != "cpu":
        return False
    model, projection = trainer.model, trainer.model.projection
    foretold = training_memory(
        model.config,
        sum(parameter.numel() for parameter in model.parameters()),
        len(projection),
        len(batch.source.tokens),
        len(batch.target.tokens),
        length=1,
        on=activation_storage(gpu=False, half=trainer.machine.precision == torch.bfloat16)._replace(slack=1.0),
    )
    return foretold.total > memory_of(trainer.machine.device)
