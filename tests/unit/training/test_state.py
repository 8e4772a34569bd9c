"""A training state survives a checkpoint."""

from dataclasses import replace

import pytest

from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data.store import PairStore
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.training.checkpointing import copy_to_cpu
from nmt.training.opening import finished_message
from nmt.training.state import TrainingState
from tests.unit.training.test_trainer import TRAINING, batches_of, store, trainer, weights

__all__ = ["store"]


def checkpoint_of(state: TrainingState) -> Checkpoint:
    step = state.trainer.step
    saved = copy_to_cpu(state.to_save())
    meta = CheckpointMeta(step=step)
    return Checkpoint(meta=meta, weights=weights(state.trainer), trainer=saved)


def test_a_restored_state_equals_the_saved_state(store: PairStore) -> None:
    state, restored = TrainingState(trainer()), TrainingState(trainer())
    for batch in batches_of(store, TRAINING, 3):
        state.trainer.update(batch)
    state.best.value, state.best.stale = 2.5, 4
    state.validation_due = True
    restored.restore(checkpoint_of(state))
    assert (restored.best.value, restored.best.stale) == (2.5, 4)
    assert restored.validation_due
    restored.start_clock()
    assert restored.clock.seconds() >= state.clock.seconds() - 1
    assert (restored.trainer.step, restored.trainer.data_position) == (3, state.trainer.data_position)
    assert restored.trainer.take_statistics() == state.trainer.take_statistics()


@pytest.mark.parametrize(
    ("schedule", "advice"),
    [("inverse_sqrt", "set training.steps above 1"), ("cosine", "begin a new run from its weights")],
)
def test_a_finished_run_says_how_to_go_on(store: PairStore, schedule: str, advice: str) -> None:
    state = TrainingState(trainer())
    state.trainer.update(batches_of(store, TRAINING, 1)[0])
    settings = replace(TRAINING, schedule=schedule, steps=1, warmup_steps=1)
    message = finished_message(checkpoint_of(state), Config(training=settings, data=DataConfig(max_pieces=20)))
    assert advice in message
    assert ("training.steps above" in message) == (schedule == "inverse_sqrt"), "resuming would refuse other steps"
