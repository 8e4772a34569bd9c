"""Passes recorded as CUDA graphs, with graphs that run their pass again: the same training, bit for bit."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partialmethod
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import RuntimeConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.errors import CommonError, UserError
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.training import recorded_passes
from nmt.training.build import records_graphs
from nmt.training.loss import Losses
from nmt.training.recorded_passes import MAX_SHAPES, RecordedPasses, Recording
from nmt.training.trainer import Trainer
from tests.quick_processes import start_group

WORDS = 50
MODEL = ModelConfig(layers=1, d_model=32, d_ff=64, heads=2)
CPU, GPU = (Machine(torch.device(name), torch.float32) for name in ("cpu", "cuda"))
ALIGNED = ["training.guided_weight=0.1", "data.train_alignments=links"]
SEEDS = (0, 1, 0, 2, 1, 0, 3, 1, 0, 2, 2)
"""The sizes of steps; 0 and 1 are the first that are met three times."""


def capture(passes: RecordedPasses, batch: MicroBatch, change: float = 1.0) -> Recording:
    """Take the place of the method that needs a GPU: a replay runs the pass again on the contents of its buffers.

    `change` multiplies the gradient of a wrong recording.
    """
    losses = Losses(torch.zeros(()), torch.zeros(()))

    def replay() -> None:
        torch._foreach_copy_(list(losses), list(passes._pass(batch)))
        torch._foreach_add_(passes._buffers, passes._new_gradients(), alpha=change)
        passes._set_gradients(passes._buffers)

    passes._set_gradients([None] * len(passes._buffers))
    return Recording(cast(Any, SimpleNamespace(replay=replay)), batch, losses)


@contextmanager
def fake_graphs(capture: Callable[..., Recording] = capture) -> Iterator[None]:
    with patch.object(RecordedPasses, "_capture", capture), patch.object(RecordedPasses, "_has_room", lambda _: True):
        yield


def step(seed: int, micro_batches: int = 1) -> GlobalBatch:
    batches = [_micro_batch(seed, number) for number in range(micro_batches)]
    tokens = sum(len(each.labels) for each in batches)
    return GlobalBatch(batches, tokens, 2 * tokens, DataPosition())


def _micro_batch(seed: int, number: int) -> MicroBatch:
    lengths, words = np.random.default_rng(seed), np.random.default_rng([seed, number])
    source, target = (
        Packed.from_sentences([words.integers(4, WORDS, lengths.integers(2, 9)).tolist() for _ in range(3 + seed)])
        for _ in range(2)
    )
    return MicroBatch(source, target, target.tokens, np.arange(source.sentences))


def trained(graphs: bool, micro_batches: int = 1) -> tuple[Trainer, list[Tensor], float]:
    """Return a trainer after some steps, its weights, and the mean loss."""
    torch.manual_seed(1)
    model = build_model(MODEL, WORDS, WORDS)
    trainer = Trainer(model, TrainingConfig(warmup_steps=10), CPU, seed=1, parallel=1, graphs=graphs)
    for seed in SEEDS:
        trainer.update(step(seed, micro_batches))
    return trainer, [each.detach().clone() for each in model.parameters()], trainer.take_statistics().loss


@pytest.mark.parametrize("micro_batches", [1, 3])
@pytest.mark.parametrize("limit", [1, MAX_SHAPES])
def test_training_with_recorded_passes_is_the_same(
    micro_batches: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several micro-batches of a size are recorded in the middle of a step, and only some sizes are."""
    monkeypatch.setattr(recorded_passes, "MAX_SHAPES", limit)
    _, weights, loss = trained(False, micro_batches)
    with fake_graphs():
        trainer, ours, our_loss = trained(True, micro_batches)
    assert our_loss == loss
    assert all(map(torch.equal, ours, weights))
    assert trainer.gradient.passes is not None
    assert trainer.gradient.passes._recordings


@pytest.mark.parametrize(
    ("capture", "reason"),
    [
        (Mock(side_effect=RuntimeError("it failed\nand advice")), r"\(it failed\): set runtime.cuda_graphs=false"),
        (partialmethod(capture, change=1.1), "a replay computes "),
    ],
    ids=["error", "wrong gradient"],
)
def test_a_graph_that_fails_or_is_wrong_ends_training_and_names_the_setting(
    capture: Callable[..., Recording], reason: str
) -> None:
    with fake_graphs(capture), pytest.raises(UserError, match=reason):
        trained(True)


def train_together() -> None:
    """Be one of several processes, each with its share of the micro-batches; print what training came to both ways."""
    runtime, found = RuntimeConfig(device="cpu", precision="fp32", threads=1, timeout_minutes=1), []
    with distributed.session(runtime) as machine:
        rank, processes = distributed.rank(), distributed.world_size()
        with fake_graphs():
            for graphs in (False, True):
                torch.manual_seed(1 + rank)  # the first process's weights become those of all
                model = build_model(replace(MODEL, dropout=0.0), WORDS, WORDS)
                trainer = Trainer(model, TrainingConfig(warmup_steps=10), machine, seed=1, parallel=1, graphs=graphs)
                for seed in SEEDS:
                    batch = step(seed, processes)
                    trainer.update(batch._replace(micro_batches=batch.micro_batches[rank::processes]))
                # the gradient of the keys' bias is nothing but rounding, from which Adam makes steps of full length
                weights = [float(each.double().norm()) for each in model.parameters() if each.dim() > 1]
                found.append([*weights, trainer.take_statistics().loss])
                assert not graphs or (trainer.gradient.passes is not None and trainer.gradient.passes._recordings)
    print(json.dumps(found))


def test_processes_that_record_passes_train_as_those_that_average_during_the_backward_pass() -> None:
    ended = [each.wait() for each in start_group(train_together, processes=2)]
    assert not any(each.returncode for each in ended), [each.stderr for each in ended]
    first, *others = (json.loads(each.stdout.splitlines()[-1]) for each in ended)
    assert all(each == first for each in others)
    assert first[1] == pytest.approx(first[0], rel=1e-6)


@pytest.mark.parametrize(
    ("reason", "machine", "settings"),
    [
        ("they need a GPU of NVIDIA", CPU, []),
        ("in fp16 the factor of the loss changes", GPU._replace(precision=torch.float16), []),
        ("the loss has more than one term", GPU, ALIGNED),
        ("the weights are divided", GPU, ["runtime.shard=weights"]),
    ],
)
def test_runs_that_cannot_be_recorded_are_refused_only_if_that_was_asked_for(
    reason: str, machine: Machine, settings: list[str]
) -> None:
    assert not records_graphs(compose(settings), machine)
    with pytest.raises(CommonError, match=f"because {reason}"):
        records_graphs(compose([*settings, "runtime.cuda_graphs=true"]), machine)
