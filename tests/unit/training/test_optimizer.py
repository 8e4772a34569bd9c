"""A sharded optimizer computes what a whole one computes, and both read each other's saved state.

Here it has a single shard; tests/integration/test_agreement.py has two.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

from nmt.compute import distributed
from nmt.config.training import TrainingConfig
from nmt.data.store import PairStore
from nmt.training.optimizer import build_optimizer
from nmt.training.trainer import Trainer
from tests.unit.training.test_checkpointing import same
from tests.unit.training.test_trainer import TRAINING, batches_of, store, trainer, weights

__all__ = ["store"]
CONFIG = replace(TRAINING, weight_decay=0.1)


@pytest.fixture(autouse=True)
def _group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    yield
    dist.destroy_process_group()


def sharded_trainer(config: TrainingConfig = CONFIG) -> Trainer:
    ours = trainer(config)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(distributed, "world_size", lambda: 2)
        ours.optimizer = build_optimizer(ours.model, replace(config, shard_optimizer=True), torch.float64)
    assert isinstance(ours.optimizer, ZeroRedundancyOptimizer)
    return ours


def test_a_sharded_optimizer_learns_and_saves_the_same(store: PairStore) -> None:
    whole, sharded = trainer(CONFIG), sharded_trainer()
    for step, batch in enumerate(batches_of(store, CONFIG, 6)):
        for each in (whole, sharded):
            broken = step == 3
            hook = next(each.model.parameters()).register_hook(lambda gradient: gradient * torch.nan)
            if not broken:
                hook.remove()
            each.update(batch)
            hook.remove()
    assert same(weights(sharded), weights(whole))
    assert same(sharded.to_save(), whole.to_save())
    assert whole.take_statistics().skipped == 1


@pytest.mark.parametrize("first", [trainer, sharded_trainer])
@pytest.mark.parametrize("second", [trainer, sharded_trainer])
def test_training_resumes_exactly_with_and_without_shards(store: PairStore, first: object, second: object) -> None:
    assert callable(first)
    assert callable(second)
    undisturbed, begun, resumed = trainer(CONFIG), first(CONFIG), second(CONFIG)
    batches = batches_of(store, CONFIG, 8)
    for batch in batches:
        undisturbed.update(batch)
    for batch in batches[:5]:
        begun.update(batch)
    saved = deepcopy(begun.to_save())
    kept = deepcopy(saved)
    resumed.model.load_state_dict(weights(begun))
    resumed.restore(saved)
    assert same(saved, kept)  # other code may read it, too
    for batch in batches[5:]:
        resumed.update(batch)
    assert same(weights(resumed), weights(undisturbed))
    assert same(resumed.to_save(), undisturbed.to_save())
