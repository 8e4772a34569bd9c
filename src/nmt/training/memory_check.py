"""Check before the first step that the model and the largest batch fit in memory."""

import gc

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine, free_cached_memory, is_out_of_memory, memory_of
from nmt.config.schema import ModelConfig
from nmt.data.batches import micro_batch_tokens
from nmt.data.loader import MicroBatch, largest_micro_batches
from nmt.data.store import Pairs
from nmt.errors import CommonError
from nmt.estimate.memory import activation_storage, training_memory
from nmt.estimate.parameters import count_parameters
from nmt.training.trainer import Trainer

BYTES_PER_PARAMETER = 16
"""Memory per parameter during training: its value, its gradient and Adam's two averages, in float32."""
BF16_COPY_BYTES = 2
"""Memory per parameter for its copy in bf16, if that is the precision of matrix products."""


def check_model_size(config: ModelConfig, source_vocabulary: int, target_vocabulary: int, machine: Machine) -> None:
    """Refuse a model that exceeds the memory of the machine, before it is built."""
    parameters, memory = count_parameters(config, source_vocabulary, target_vocabulary).total, memory_of(machine.device)
    copy_bytes = BF16_COPY_BYTES if machine.precision == torch.bfloat16 else 0
    needed = (BYTES_PER_PARAMETER + copy_bytes) * parameters
    if needed > memory:
        raise CommonError(
            f"a model of {parameters:,} parameters takes {needed // 10**9:,} GB to train, but {machine} "
            f"has a memory of {memory // 10**9:,} GB: lower model.layers, model.d_model, model.d_ff or model.heads"
        )


def check_memory(trainer: Trainer, store: Pairs, longest_sentence: int) -> None:
    """Try the largest batches; if they do not fit, raise an error that says how many tokens would.

    All processes must call this, and all raise the same error.

    Args:
        trainer: The trainer, which is left unchanged.
        store: The training text.
        longest_sentence: The number of tokens of the longest sentence, which a device must be able to hold.
    """
    config = trainer.config
    tokens = micro_batch_tokens(config.batch_tokens, config.device_tokens, distributed.world_size())
    if _fits(trainer, store, config.device_tokens):
        return
    smaller = tokens // 2
    while smaller >= longest_sentence and not _fits(trainer, store, smaller):
        smaller //= 2
    remedy = (
        f"training.device_tokens={smaller} would fit, and leaves the global batches unchanged"
        if smaller >= longest_sentence
        else "far fewer do not fit either: choose a smaller model, or lower data.max_pieces"
    )
    raise CommonError(f"{tokens:,} tokens per side do not fit in the memory of {trainer.machine}; {remedy}")


def _fits(trainer: Trainer, store: Pairs, device_tokens: int) -> bool:
    """Return whether the largest micro-batches fit on all devices."""
    config = trainer.config
    batches = largest_micro_batches(
        store,
        batch_tokens=config.batch_tokens,
        device_tokens=device_tokens,
        seed=trainer.seed,
        devices=distributed.world_size(),
        threads=trainer.concurrency,
        shapes=trainer.shapes(device_tokens),
    )
    out_of_memory = 0
    try:
        for batch in batches:
            if _exceeds_memory(trainer, batch):
                raise MemoryError
            trainer.try_out(batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        out_of_memory = 1
    if out_of_memory:
        gc.collect()
        free_cached_memory(trainer.machine.device)
    return not distributed.highest(out_of_memory)


def _exceeds_memory(trainer: Trainer, batch: MicroBatch) -> bool:
    """Return whether a batch needs more memory than the machine has: Linux would kill the process."""
    if trainer.machine.device.type != "cpu":
        return False
    model, projection = trainer.model, trainer.model.projection
    estimate = training_memory(
        model.config,
        sum(parameter.numel() for parameter in model.parameters()),
        len(projection),
        len(batch.source.tokens),
        len(batch.target.tokens),
        length=1,
        on=activation_storage(gpu=False, half=trainer.machine.precision == torch.bfloat16)._replace(slack=1.0),
    )
    return estimate.total > memory_of(trainer.machine.device)
