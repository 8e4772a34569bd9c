"""The loss on the development set, during training and when checkpoints are chosen."""

from collections.abc import Iterator

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batches import PairLengths, plan_epoch, split_batch
from nmt.data.loader import MicroBatch, assemble
from nmt.data.store import PairStore
from nmt.decoding.engine import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS
from nmt.model.interface import TranslationModel
from nmt.training.trainer import Means, held_out_loss


def development_loss(
    model: TranslationModel,
    valid: PairStore,
    config: TrainingConfig,
    machine: Machine,
    interruptible_together: Interruptible,
) -> Means:
    """Return the mean losses on the development set; every process takes its share."""
    return held_out_loss(model, own_batches(valid, config, model.config), config, machine, interruptible_together)


def own_batches(valid: PairStore, config: TrainingConfig, model: ModelConfig) -> Iterator[MicroBatch]:
    """Yield this process's share of the development set, with sentences cut as decoding and scoring cut them."""
    known = model.max_positions if model.positions == "learned" else MAX_TARGET_TOKENS
    limits = min(MAX_SOURCE_TOKENS, known) - 1, min(MAX_TARGET_TOKENS, known) - 1
    lengths = PairLengths.with_marks(valid.source_lengths.clip(max=limits[0]), valid.target_lengths.clip(max=limits[1]))
    devices, budget = distributed.world_size(), config.device_tokens or config.batch_tokens
    plan = plan_epoch(lengths, config.batch_tokens, seed=0, epoch=0)
    for index in range(len(plan)):
        for part in split_batch(plan[index], lengths, devices, budget)[distributed.rank() :: devices]:
            yield assemble(valid, part, limits)
