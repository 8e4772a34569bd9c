"""What several processes do together in the tests: train with divided weights and with whole ones, and compare."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import RuntimeConfig
from nmt.data.batches import Batching
from nmt.data.loader import DataPosition, GlobalBatch, assemble, global_batches
from nmt.model.build import build_model
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.training.checkpointing import copy_to_cpu
from nmt.training.divided import DividedWeights
from nmt.training.replicas import Replicas
from nmt.training.state import TrainingState
from nmt.training.trainer import Trainer
from nmt.training.validation import held_out_loss
from tests.unit.training.test_memory_check import WORDS, store

MODEL = ModelConfig(layers=1, d_model=18, d_ff=30, heads=2, dropout=0.0)
"""A model whose matrices do not divide evenly between four processes."""
TRAINING = TrainingConfig(batch_tokens=300, device_tokens=120, warmup_steps=5, adam_eps=1e-5, clip_norm=0.5)
STEPS = 4
BAD_STEP = 3
"""The step at which one process has a gradient that is not finite."""
KINDS = Replicas, DividedWeights


def new_trainer(
    kind: type[Replicas], precision: torch.dtype = torch.float64, model: ModelConfig = MODEL, **settings: Any
) -> Trainer:
    """Return a trainer with random weights, the same in all processes; in float64, a mistake exceeds all rounding."""
    torch.manual_seed(3)
    built, exact = build_model(model, WORDS, WORDS), precision == torch.float64
    machine = Machine(torch.device("cpu"), torch.float32 if exact else precision)
    return Trainer(built.double() if exact else built, replace(TRAINING, **settings), machine, seed=1, replicas=kind)


def batches(start: DataPosition | None = None) -> list[GlobalBatch]:
    """Return this process's share of a few global batches."""
    stream = global_batches(
        store(),
        Batching(TRAINING.batch_tokens, seed=1),
        device_tokens=TRAINING.device_tokens,
        start=start or DataPosition(),
        rank=distributed.rank(),
        devices=distributed.world_size(),
    )
    return [next(stream) for _ in range(STEPS)]


def train(ours: Trainer, parts: list[GlobalBatch], *, bad_step: int = 0) -> list[tuple[float, float]]:
    """Train; return the loss and the norm of the gradient of each step."""
    found = []
    for batch in parts:
        broken = ours.step + 1 == bad_step and distributed.rank() == 1
        ours.update(batch._replace(target_tokens=float("nan")) if broken else batch)  # type: ignore[arg-type]
        found.append((ours.take_statistics().loss, float(ours.gradient_norm)))
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether nested containers are nearly equal, and of the same shapes and types."""
    match one:
        case Tensor():
            return one.dtype == other.dtype and one.shape == other.shape and torch.allclose(one, other, rtol=1e-8)
        case Mapping():
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        case list() | tuple():
            return len(one) == len(other) and all(same(*both) for both in zip(one, other, strict=True))
    return bool(one == other)


def saved(ours: TrainingState) -> Checkpoint:
    """Return a checkpoint as every process reads it from the disk."""
    state, weights = copy_to_cpu(ours.to_save()), copy_to_cpu(ours.trainer.weights())
    (weights, state, *_) = distributed.gather_objects((weights, state))[0]
    return Checkpoint(meta=CheckpointMeta(step=ours.trainer.step), weights=weights, trainer=state)


def check_the_same_numbers() -> None:
    """Learn the same, clip, skip bad steps, evaluate and save the same, with divided weights as with whole ones."""
    other = replace(MODEL, tie_embeddings=False, output_bias=True, norm_placement="pre")
    for model, ema, decay in ((MODEL, 0.3, 0.0), (other, 0.0, 0.1)):
        whole, divided = (TrainingState(new_trainer(kind, model=model, ema=ema, weight_decay=decay)) for kind in KINDS)
        divided.trainer.try_out(batches()[0].micro_batches[0])  # leaves nothing behind
        expected, found = (train(each.trainer, batches(), bad_step=BAD_STEP) for each in (whole, divided))
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        assert np.isnan(expected[BAD_STEP - 1]).all()
        ours = sum(each.numel() for each in divided.trainer.replicas.trained.values())
        assert ours < 0.7 * sum(each.numel() for each in whole.trainer.replicas.trained.values())
        text = [assemble(store(), np.arange(10 * (1 + distributed.rank())))]  # more in one process than in the other
        losses = []
        for each in (whole.trainer, divided.trainer):
            with each.evaluating() as weights:
                losses.append(held_out_loss(weights, text, TRAINING, each.machine.device).loss)
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-10)
        one, two = saved(whole), saved(divided)
        assert same(one.weights, two.weights)
        assert one.trainer is not None
        assert two.trainer is not None
        assert same(one.trainer["trainer"], two.trainer["trainer"])


def check_resuming() -> None:
    """Resume from checkpoints of whole and of divided weights, with whole and with divided ones."""
    undisturbed = TrainingState(new_trainer(Replicas, ema=0.3))
    train(undisturbed.trainer, batches())
    rest = batches(undisturbed.trainer.data_position)
    middle = [TrainingState(new_trainer(kind, ema=0.3)) for kind in KINDS]
    for state in middle:
        train(state.trainer, batches())
    expected = train(undisturbed.trainer, rest)
    for state in middle:
        checkpoint = saved(state)
        for second in KINDS:
            resumed = TrainingState(new_trainer(second, ema=0.3))
            resumed.restore(deepcopy(checkpoint))  # the optimizer continues in the tensors that it is given
            np.testing.assert_allclose(train(resumed.trainer, rest), expected, rtol=1e-8)
            assert same(saved(resumed).weights, saved(undisturbed).weights)


def main() -> int:
    """Run all checks in this process of a group."""
    with distributed.session(RuntimeConfig(device="cpu", threads=1, timeout_minutes=1)):
        check_the_same_numbers()
        check_resuming()
    return 0
