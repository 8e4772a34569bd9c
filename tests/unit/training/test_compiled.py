"""Compiled training: one graph for all batches, split for the reductions between processes."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch._dynamo.backends.distributed import DDPOptimizer
from torch._dynamo.testing import CompileCounterWithBackend
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.fx.experimental import _config as fx_config

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.training.build import compile_model
from nmt.training.trainer import Trainer

WORDS = 50
MODEL = ModelConfig(layers=1, d_model=64, d_ff=2048, heads=2)
CPU = Machine(torch.device("cpu"), torch.float32)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    with fx_config.patch(use_duck_shape=True):  # type: ignore[attr-defined]
        yield
    torch.compiler.reset()


@pytest.fixture
def one_of_several(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that wraps its model as one of several does, in a group of its own."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    yield
    dist.destroy_process_group()


def step(seed: int) -> GlobalBatch:
    random = np.random.default_rng(seed)
    source, target = (
        Packed.from_sentences([random.integers(4, WORDS, random.integers(2, 9)).tolist() for _ in range(3 + seed)])
        for _ in range(2)
    )
    batch = MicroBatch(source, target, target.tokens, np.arange(source.sentences))
    return GlobalBatch([batch], len(target.tokens), 0, DataPosition())


@pytest.mark.slow
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_trial_batch_compiles_the_graph_that_overlaps_reductions_with_the_backward_pass(
    precision: torch.dtype, one_of_several: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = []
    compile_fn = DDPOptimizer.compile_fn

    def spy(optimizer: DDPOptimizer, *arguments: Any, **options: Any) -> Any:
        compiled = compile_fn(optimizer, *arguments, **options)
        buckets.append(len(optimizer.buckets))
        return compiled

    monkeypatch.setattr(DDPOptimizer, "compile_fn", spy)
    model = build_model(MODEL, WORDS, WORDS)
    counter = CompileCounterWithBackend("aot_eager")
    model.compile = partial(model.compile, backend=counter)  # type: ignore[method-assign]
    compile_model(model)
    trainer = Trainer(model, TrainingConfig(), CPU._replace(precision=precision), seed=1)
    trainer.try_out(step(0).micro_batches[0])
    assert max(buckets, default=0) > 1
    graphs = counter.frame_count
    for seed in range(2):
        trainer.update(step(seed))
    assert len(buckets) == 1
    assert counter.frame_count == graphs
