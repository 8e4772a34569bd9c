"""The loss on the development set, during training and when checkpoints are chosen."""

from collections.abc import Iterator

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batches import Lengths, plan_epoch, slice_batch
from nmt.data.loader import Batch, assemble
from nmt.data.store import PairStore
from nmt.decoding.engine import LONGEST_SOURCE, LONGEST_TARGET
from nmt.model.transformer import Transformer
from nmt.training.trainer import Means, Stoppable, held_out_loss


def development_loss(
    model: Transformer, valid: PairStore, config: TrainingConfig, machine: Machine, own_part: Stoppable
) -> Means:
    """Return the mean losses on the development set; every process takes its share."""
    return held_out_loss(model, own_batches(valid, config, model.config), config, machine, own_part)


def own_batches(valid: PairStore, config: TrainingConfig, model: ModelConfig) -> Iterator[Batch]:
    """Yield this process's share of the development set, with sentences cut as decoding and scoring cut them."""
    known = model.max_positions if model.positions == "learned" else LONGEST_TARGET
    limits = min(LONGEST_SOURCE, known) - 1, min(LONGEST_TARGET, known) - 1
    lengths = Lengths.with_marks(valid.source_lengths.clip(max=limits[0]), valid.target_lengths.clip(max=limits[1]))
    devices, budget = distributed.world_size(), config.device_tokens or config.batch_tokens
    plan = plan_epoch(lengths, config.batch_tokens, seed=0, epoch=0)
    for index in range(len(plan)):
        for part in slice_batch(plan[index], lengths, devices, budget)[distributed.rank() :: devices]:
            yield assemble(valid, part, limits)
