"""Train a tiny model in one of several processes, each at its own speed."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import RuntimeConfig
from nmt.data.batches import Batching
from nmt.data.loader import global_batches
from nmt.model.build import build_model
from nmt.runs.checkpoints import Checkpoints, load_last_good
from nmt.runs.tracker import Tracker
from nmt.training.checkpointing import CheckpointManager
from nmt.training.loop import Loop
from nmt.training.state import TrainingState
from nmt.training.trainer import Trainer
from tests.unit.training.test_checkpointing import TEMPLATE
from tests.unit.training.test_memory_check import WORDS, store


class Slow(Trainer):
    """Takes longer for a step in later processes, and sends itself a signal in the middle of one."""

    signal_step = 0

    def __init__(self, *what: Any, **more: Any) -> None:
        super().__init__(*what, **more)
        self.losses: list[float] = []

    def update(self, *what: Any) -> None:
        """Train on a batch."""
        time.sleep(0.002 * distributed.rank())
        super().update(*what)
        self.losses.append(self.take_statistics().loss)
        if self.step == self.signal_step:
            os.kill(os.getpid(), signal.SIGTERM)


def run(folder: Path, signal_step: int) -> dict[str, Any]:
    """Train from the last checkpoint in the folder on, and return what happened."""
    config = TrainingConfig(
        batch_tokens=300, warmup_steps=20, learning_rate=1e-2, steps=60, valid_every=25, save_every=20
    )
    torch.manual_seed(1)
    model = build_model(ModelConfig(layers=1, d_model=16, d_ff=32, heads=2), WORDS, WORDS)
    ours = Slow(model, config, Machine(torch.device("cpu"), torch.float32), seed=1)
    ours.signal_step = signal_step if distributed.rank() == distributed.world_size() - 1 else 0
    state = TrainingState(ours)
    if (checkpoint := load_last_good(folder)) is not None:
        state.restore(checkpoint)
    manager = CheckpointManager(Checkpoints(folder, config.keep_last, config.keep_best), TEMPLATE, in_background=False)
    batches = global_batches(
        store(), Batching(300, seed=1), device_tokens=0, start=ours.data_position,
        rank=distributed.rank(), devices=distributed.world_size(),
    )  # fmt: skip
    ending = Loop(state, Tracker(), lambda _: {"loss": 1 / (1 + ours.step)}, manager).run(batches)
    weights = [float(weight.double().sum()) for weight in ours.model.parameters()]
    return {"ending": ending.name, "step": ours.step, "losses": ours.losses, "weights": weights}


def main(folder: Path, signal_step: int) -> None:
    """Train in this process, which is one of a group, and print what happened."""
    with distributed.session(RuntimeConfig(device="cpu", threads=1, timeout_minutes=1)):
        print(json.dumps(run(folder, signal_step)))
