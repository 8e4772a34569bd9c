"""Whether the largest batch fits in memory, found out before the first step rather than hours later."""

import gc
import math

import torch

from nmt import distributed
from nmt.data.loader import largest
from nmt.data.store import PairStore
from nmt.errors import CommonError
from nmt.machine import is_out_of_memory
from nmt.training.step import Trainer


def check_fit(trainer: Trainer, store: PairStore, least: int) -> None:
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
    batches = largest(
        store,
        batch_tokens=config.batch_tokens,
        device_tokens=device_tokens,
        seed=trainer.seed,
        devices=distributed.world_size(),
        parts=trainer.parts,
    )
    full = 0
    try:
        for batch in batches:
            trainer.try_out(batch)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        full = 1
    if full and trainer.machine.device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
    return not distributed.highest(full)
