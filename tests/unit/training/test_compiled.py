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
from nmt.config.schema import ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.errors import ConfigError
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.training.compiled import compile_model, try_cuda_graphs
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
    model.compile = partial(model.compile, backend=counter)  # type: ignore[method-assign,call-arg]
    compile_model(model)
    trainer = Trainer(model, TrainingConfig(), CPU._replace(precision=precision), seed=1)
    trainer.try_out(step(0).micro_batches[0])
    assert max(buckets, default=0) > 1
    graphs = counter.frame_count
    for seed in range(2):
        trainer.update(step(seed))
    assert len(buckets) == 1
    assert counter.frame_count == graphs


class GraphsFail:
    """Records how a model is compiled, and fails as long as it is compiled for CUDA graphs."""

    def __init__(self) -> None:
        self.modes: list[str | None] = []

    def compile(self, *, dynamic: bool, mode: str | None = None) -> None:
        assert dynamic
        self.modes.append(mode)

    def run(self, *_: Any) -> None:
        if self.modes[-1] is not None:
            raise RuntimeError("capture failed\nand a long explanation")


@pytest.mark.parametrize(
    ("micro_batches", "reason"), [(1, "capture failed"), (2, "they do not allow several micro-batches per step")]
)
def test_training_goes_on_without_cuda_graphs_that_fail(
    micro_batches: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model, graphs = build_model(MODEL, WORDS, WORDS), GraphsFail()
    model.compile = graphs.compile  # type: ignore[method-assign]
    model.register_forward_pre_hook(graphs.run)  # type: ignore[attr-defined]
    compile_model(model, cuda_graphs=True)
    trainer = Trainer(model, TrainingConfig(), CPU, seed=1)
    batch = step(0)
    batch = batch._replace(micro_batches=batch.micro_batches * micro_batches)
    try_cuda_graphs(trainer, batch)
    assert graphs.modes == ["reduce-overhead", None]
    assert capsys.readouterr().err == f"warning: training goes on without CUDA graphs: {reason}\n"
    trainer.update(batch)


def test_cuda_graphs_that_work_are_kept_and_trying_them_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    model, graphs = build_model(MODEL, WORDS, WORDS), GraphsFail()
    model.compile = graphs.compile  # type: ignore[method-assign]
    compile_model(model, cuda_graphs=True)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    try_cuda_graphs(Trainer(model, TrainingConfig(), CPU, seed=1), step(0))
    assert graphs.modes == ["reduce-overhead"]
    assert not capsys.readouterr().err
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_cuda_graphs_need_a_compiled_model() -> None:
    with pytest.raises(ConfigError, match=r"runtime.cuda_graphs=true needs runtime.compile=true"):
        RuntimeConfig(cuda_graphs=True)
