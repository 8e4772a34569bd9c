"""Check before the first step that the model and the largest batch fit in memory."""

import gc
import sys
from dataclasses import replace

from nmt.compute import distributed
from nmt.compute.machine import HALF_PRECISIONS, free_cached_memory, is_out_of_memory, memory_of
from nmt.config.tree import Config
from nmt.data.batches import Batching
from nmt.data.largest_batches import largest_micro_batches
from nmt.data.loader import MicroBatch
from nmt.data.shapes import ROOM_TO_GROW, micro_batch_tokens
from nmt.data.store import PairStore
from nmt.errors import CommonError, UserError
from nmt.estimate.memory import Storage, training_memory
from nmt.training.optimizer import state_tensors
from nmt.training.trainer import Trainer


def fit_in_memory(config: Config, trainer: Trainer, train: PairStore, *, noisy: bool) -> Config:
    """Try the largest batches, and return the settings, with smaller micro-batches if these do not fit."""
    tokens = tokens_that_fit(trainer, train, longest_sentence=config.data.max_pieces + 1, changed=noisy)
    if tokens == config.training.device_tokens:
        return config
    if distributed.is_main():
        print(
            f"warning: the largest micro-batch does not fit in the memory of {trainer.machine}, so this run takes "
            f"training.device_tokens={tokens}; the global batches are the same",
            file=sys.stderr,
            flush=True,
        )
    trainer.config = replace(config.training, device_tokens=tokens)
    return replace(config, training=trainer.config)


def tokens_that_fit(trainer: Trainer, store: PairStore, longest_sentence: int, *, changed: bool = False) -> int:
    """Try the largest batches, and return `training.device_tokens`, or a smaller value for which they fit in memory.

    All processes must call this, and all return the same value, or raise the same error if no value fits.

    Args:
        trainer: The trainer, which is left unchanged.
        store: The training text.
        longest_sentence: The number of tokens of the longest sentence, which a device must be able to hold.
        changed: Whether noise may make batches longer than planned.
    """
    config = trainer.config
    planned = int(config.batch_tokens * ROOM_TO_GROW) if changed else config.batch_tokens
    if _fits(trainer, store, planned, config.device_tokens):
        return config.device_tokens
    tokens = micro_batch_tokens(config.batch_tokens, config.device_tokens, distributed.world_size())
    smaller = tokens // 2
    while smaller >= longest_sentence:
        if _fits(trainer, store, planned, smaller):
            return smaller
        smaller //= 2
    raise CommonError(
        f"{tokens:,} tokens per side do not fit in the memory of {trainer.machine}; far fewer do not fit either: "
        "choose a smaller model, or lower data.max_pieces"
    )


def _fits(trainer: Trainer, store: PairStore, batch_tokens: int, device_tokens: int) -> bool:
    """Return whether the largest micro-batches fit on all devices."""
    batches = largest_micro_batches(
        store,
        replace(Batching.of(trainer.config, trainer.gradient.seed), tokens=batch_tokens),
        device_tokens=device_tokens,
        devices=distributed.world_size(),
        threads=trainer.gradient.concurrency,
        shapes=trainer.shapes(device_tokens),
    )
    out_of_memory = False
    try:
        for batch in batches:
            if _exceeds_memory(trainer, batch):
                raise MemoryError
            trainer.try_out(batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            _explain_compiler(error)
            raise
        if trainer.replicas.divides_weights:  # the others wait for this process, so it cannot try another size
            raise UserError(
                f"the largest micro-batch does not fit in the memory of {trainer.machine}: lower "
                "training.device_tokens, or start more processes, between which the weights are divided"
            ) from error
        out_of_memory = True
    if out_of_memory:
        gc.collect()
        free_cached_memory(trainer.machine.device)
    return not distributed.highest(out_of_memory)


def _exceeds_memory(trainer: Trainer, batch: MicroBatch) -> bool:
    """Return whether a batch needs more memory than a CPU has: Linux would kill the process."""
    if trainer.machine.device.type != "cpu":
        return False
    shards = distributed.world_size() if trainer.replicas.divides_weights else 1
    estimate = training_memory(
        trainer.model.config,
        sum(each.numel() for each in trainer.model.parameters()) // shards,
        len(trainer.model.projection),
        (len(batch.source.tokens), len(batch.target.tokens)),
        length=1,
        on=Storage(gpu=False, half=trainer.machine.precision in HALF_PRECISIONS, least=True),
        state=sum(each.numel() for each in state_tensors(trainer.optimizer)),
    )
    return estimate.total > memory_of(trainer.machine.device)


def _explain_compiler(error: Exception) -> None:
    """Raise an error of one line if PyTorch could not compile a model."""
    dynamo = sys.modules.get("torch._dynamo.exc")  # it takes seconds to import, and has compiled nothing until then
    if dynamo is not None and isinstance(error, dynamo.TorchDynamoException):
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"PyTorch cannot compile the model ({reason}): set runtime.compile=false") from error
