"""Compilation of the model by torch.compile, and CUDA graphs of the compiled model."""

import sys
from typing import Any, cast

import torch
from torch.fx.experimental import _config as fx_config

from nmt.compute import distributed
from nmt.data.loader import GlobalBatch
from nmt.model.interface import TranslationModel
from nmt.model.kernels.backend import mark_constants
from nmt.training.graph_shapes import RECORDED_AT, GraphShapes
from nmt.training.trainer import Trainer

RUNS_UNTIL_REPLAY = RECORDED_AT + 2
"""The run that makes a size recorded warms up, the second one is captured, and the third one is the first replay."""


def compile_model(model: TranslationModel, *, cuda_graphs: bool = False) -> GraphShapes | None:
    """Compile the model at its first call: one graph for batches of all sizes.

    With CUDA graphs, return what decides which sizes are recorded.
    """
    # two sizes that are equal in the first batch, such as those of source and target, may differ in the next
    fx_config.use_duck_shape = False
    mark_constants()
    model.compile(dynamic=True)
    if not cuda_graphs:
        return None
    module = cast(Any, model)  # the attribute is PyTorch's own
    without = module._compiled_call_impl
    model.compile(dynamic=True, mode="reduce-overhead")
    module._compiled_call_impl = shapes = GraphShapes(module, module._compiled_call_impl, without)
    return shapes


def try_cuda_graphs(trainer: Trainer, step: GlobalBatch) -> None:
    """Run a step until its CUDA graphs are replayed, without changing anything; if that fails, do without them.

    All processes must call this, and all decide the same.
    """
    obstacle = ""
    try:
        if len(step.micro_batches) > 1:  # a replay overwrites the gradients of the one before
            raise RuntimeError("they do not allow several micro-batches per step")
        for _ in range(RUNS_UNTIL_REPLAY):
            trainer.try_out(step.micro_batches[0])
    except (RuntimeError, AssertionError) as error:  # whatever fails in a capture
        obstacle = next(iter(str(error).splitlines()), type(error).__name__)
    obstacles = [each for each in distributed.gather_objects(obstacle) if each]
    if not obstacles:
        return
    torch.compiler.reset()
    for hook in trainer.hooks:
        if isinstance(hook, GraphShapes):
            hook.turn_off()
    if distributed.is_main():
        print(f"warning: training goes on without CUDA graphs: {obstacles[0]}", file=sys.stderr, flush=True)
