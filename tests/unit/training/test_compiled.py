"""Compiled training: one graph for all batches, split for the reductions between processes."""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

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
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.training.additions import Additions
from nmt.training.compiled import compile_model, try_cuda_graphs
from nmt.training.graph_shapes import MAX_SHAPES, RECORDED_AT, Recorded
from nmt.training.hook import Report
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


class Compiler:
    """Records how a model is compiled, and runs it as it is."""

    def __init__(self, model: TranslationModel, *, fails: bool) -> None:
        """If it `fails`, what is compiled for CUDA graphs raises an error."""
        self.modes: list[str | None] = []
        self.calls: list[str | None] = []
        self._model, self._fails = cast(Any, model), fails
        self._model.compile = self._compile

    def _compile(self, *, dynamic: bool, mode: str | None = None) -> None:
        assert dynamic
        self.modes.append(mode)
        self._model._compiled_call_impl = partial(self._run, mode)

    def _run(self, mode: str | None, *inputs: Any) -> Any:
        self.calls.append(mode)
        if mode is not None and self._fails:
            raise RuntimeError("capture failed\nand a long explanation")
        return self._model._call_impl(*inputs)


def graphed_trainer(*, fails: bool, limit: int = MAX_SHAPES) -> tuple[Trainer, Compiler]:
    """Return a trainer with CUDA graphs, which fail or work."""
    model = build_model(MODEL, WORDS, WORDS)
    compiler = Compiler(model, fails=fails)
    shapes = compile_model(model, cuda_graphs=True)
    assert shapes is not None
    shapes.recorded = Recorded(limit)
    return Trainer(model, TrainingConfig(), CPU, seed=1, additions=Additions(hooks=[shapes])), compiler


@pytest.mark.parametrize(
    ("micro_batches", "reason"), [(1, "capture failed"), (2, "they do not allow several micro-batches per step")]
)
def test_training_goes_on_without_cuda_graphs_that_fail(
    micro_batches: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer, compiler = graphed_trainer(fails=True)
    batch = step(0)
    batch = batch._replace(micro_batches=batch.micro_batches * micro_batches)
    try_cuda_graphs(trainer, batch)
    assert capsys.readouterr().err == f"warning: training goes on without CUDA graphs: {reason}\n"
    compiler.calls.clear()
    trainer.update(batch)
    assert compiler.calls == [None] * micro_batches
    assert trainer.hooks[0].report(1) == Report()


def test_cuda_graphs_that_work_are_kept_and_trying_them_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    trainer, compiler = graphed_trainer(fails=False)
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    try_cuda_graphs(trainer, step(0))
    assert compiler.modes == [None, "reduce-overhead"]
    assert compiler.calls == [None] * (RECORDED_AT - 1) + ["reduce-overhead"] * 3
    assert not capsys.readouterr().err
    assert all(torch.equal(weight, before[name]) for name, weight in trainer.model.state_dict().items())


def test_sizes_that_are_met_often_run_with_graphs_up_to_the_limit() -> None:
    trainer, compiler = graphed_trainer(fails=False, limit=2)
    seeds = (0, 1, 0, 2, 1, 0, 3, 1, 0, 2, 2)  # sizes 0 and 1 are the first that are met three times
    for seed in seeds:
        trainer.update(step(seed))
    places = [place for place, mode in enumerate(compiler.calls) if mode == "reduce-overhead"]
    assert [seeds[place] for place in places] == [0, 1, 0]
    assert places == [5, 7, 8]
    report = trainer.hooks[0].report(len(seeds))
    assert report.figures == {"graph_shapes": 2, "graph_share": round(3 / len(seeds), 4)}
    assert report.lines == ["2 sizes of micro-batches are recorded as CUDA graphs; others run without"]
    trainer.update(step(0))
    assert trainer.hooks[0].report(12) == Report({"graph_shapes": 2, "graph_share": 1.0}, lines=[])


def test_validation_records_nothing() -> None:
    trainer, compiler = graphed_trainer(fails=False)
    (batch,) = step(0).micro_batches
    with trainer.evaluating() as weights, torch.inference_mode():
        weights.model.eval()(batch.source, batch.target)
    assert compiler.calls == [None]
    assert trainer.hooks[0].report(1) == Report()


def test_cuda_graphs_need_a_compiled_model() -> None:
    with pytest.raises(ConfigError, match=r"runtime.cuda_graphs=true needs runtime.compile=true"):
        RuntimeConfig(cuda_graphs=True)
