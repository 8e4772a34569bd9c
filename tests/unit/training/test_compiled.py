"""Compiled training: one graph for all batches, split for the reductions between processes."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._dynamo.backends.distributed import DDPOptimizer
from torch._dynamo.testing import CompileCounterWithBackend
from torch.fx.experimental import _config as fx_config

from nmt.compute import distributed
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.model.build import build_model
from nmt.training.build import compile_model
from nmt.training.trainer import Trainer
from tests.unit.training.test_recorded_passes import CPU, WORDS, step


@pytest.fixture
def _one_of_several(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that wraps its model as one of several does, in a group of its own."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    torch.compiler.reset()
    with fx_config.patch(use_duck_shape=True):  # type: ignore[attr-defined]
        yield
    torch.compiler.reset()
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.usefixtures("_one_of_several")
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_trial_batch_compiles_the_graph_that_overlaps_reductions_with_the_backward_pass(
    precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = []
    compile_fn = DDPOptimizer.compile_fn

    def spy(optimizer: DDPOptimizer, *arguments: Any, **options: Any) -> Any:
        compiled = compile_fn(optimizer, *arguments, **options)
        buckets.append(len(optimizer.buckets))
        return compiled

    monkeypatch.setattr(DDPOptimizer, "compile_fn", spy)
    model = build_model(ModelConfig(layers=1, d_model=64, d_ff=2048, heads=2, tie_embeddings=False), WORDS, WORDS)
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
