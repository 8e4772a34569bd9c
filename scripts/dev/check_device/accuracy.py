"""Compare a device's results with float64 on the CPU, by relative norm."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.keys import with_values
from nmt.config.schema import Config, DataConfig, ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.synthetic import synthetic_pairs
from nmt.measuring.search import Settings
from nmt.model.attention import FlashAttend, PaddedAttend, ShortAttend
from nmt.model.operation_errors import TOLERANCES as OPERATION_TOLERANCES
from nmt.model.operation_errors import (
    MakesAttend,
    attention_error,
    rectifier_error,
    relative_error,
    residual_error,
    softmax_error,
)
from nmt.training.new_trainer import new_trainer
from shared.synthetic import synthetic_batches

WORDS = 1000
TOLERANCES = {"fp32": 2e-5, "tf32": 3e-2, "bf16": 8e-2}
"""Largest relative error of the gradient of a small model, by the precision of matrix products.

float32 keeps 24 bits, TF32 11 and bf16 8, so that a product is off by 6e-8, 5e-4 and 4e-3. Through the layers and back
the errors grow up to twentyfold: 4e-7 in float32 and 4e-2 in bf16 were measured on a CPU, and 9e-3 with the products of
a CPU rounded like TF32's."""
LOSS_TOLERANCES = {"fp32": 2e-6, "tf32": 1e-3, "bf16": 5e-3}
"""The same for the loss, a mean over tokens, in which most of these errors cancel."""


class Comparison(NamedTuple):
    """How far the results of a device are from float64."""

    name: str
    loss_error: float | None
    """None for a single operation, which has no loss."""
    error: float
    """Of the gradient, or the largest of an operation's results and gradients."""
    tolerance: float
    correct: bool


class TrainingPath(NamedTuple):
    """A way to compute a training step."""

    name: str
    settings: Settings
    precision: str
    """A key of TOLERANCES."""
    tf32: bool = True
    """Whether float32 matrix products may use TF32, which only GPUs have."""


def training_paths(device: str, *, compiled: bool) -> list[TrainingPath]:
    """Return the paths that a device should be able to compute."""
    on_gpu = device == "cuda"
    fp32, bf16 = {"runtime.precision": "fp32"}, {"runtime.precision": "bf16"}
    paths = [TrainingPath("fp32", fp32, "tf32" if on_gpu else "fp32"), TrainingPath("bf16", bf16, "bf16")]
    if on_gpu:
        paths.append(TrainingPath("fp32 without TF32", fp32, "fp32", tf32=False))
        kinds = ("padded", "flash", "short")
        paths += [TrainingPath(f"bf16 {kind}", {**bf16, "runtime.attention": kind}, "bf16") for kind in kinds]
    if compiled:
        paths += [
            each._replace(name=f"{each.name} compiled", settings={**each.settings, "runtime.compile": True})
            for each in paths[:2]
        ]
    return paths


def small_run(device: str) -> Config:
    """Return the settings of a small model without dropout."""
    return Config(
        model=ModelConfig(layers=2, d_model=128, d_ff=512, heads=2, dropout=0.0),
        training=TrainingConfig(batch_tokens=600),
        data=DataConfig(max_pieces=60),
        runtime=RuntimeConfig(device=device, threads=1),
    )


class Step(NamedTuple):
    """The loss of a step and its gradient with respect to all weights."""

    loss: float
    gradient: Tensor


def training_step(config: Config, machine: Machine) -> Step:
    """Make one update with the real trainer, and return what it computed."""
    trainer = new_trainer(config, machine, WORDS, WORDS)
    if machine.precision == torch.float64:
        trainer.model.double()
    gradients = list[Tensor]()

    def keep(*_: object) -> None:
        gradients.extend(each.grad.detach().double().cpu().flatten() for each in parameters if each.grad is not None)

    parameters = list(trainer.model.parameters())
    trainer.optimizer.register_step_pre_hook(keep)
    text = synthetic_pairs(WORDS, WORDS, pairs=500, max_length=config.data.max_pieces)
    trainer.update(next(synthetic_batches(trainer, text)))
    return Step(trainer.take_statistics().loss, torch.cat(gradients))


def exact_step() -> Step:
    """Return the step in float64 on the CPU."""
    return training_step(small_run("cpu"), Machine(torch.device("cpu"), torch.float64))


def compare_training(path: TrainingPath, device: str, exact: Step) -> Comparison:
    """Compare a training step on a device with the exact one."""
    config = with_values(small_run(device), path.settings)
    machine = prepare_machine(config.runtime)
    with matrix_products(tf32=path.tf32):
        step = training_step(config, machine)
    loss_error, error = abs(step.loss / exact.loss - 1), relative_error(step.gradient, exact.gradient)
    tolerance = TOLERANCES[path.precision]
    correct = loss_error < LOSS_TOLERANCES[path.precision] and error < tolerance
    return Comparison(path.name, loss_error, error, tolerance, correct)


@contextmanager
def matrix_products(*, tf32: bool) -> Iterator[None]:
    """Let float32 matrix products use TF32 in this block if the process does, or never."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


KINDS: dict[str, MakesAttend] = {"padded": PaddedAttend, "short": ShortAttend, "flash": FlashAttend}


def compare_operations(device: torch.device) -> Iterator[Comparison]:
    """Compare each fused operation on a device with float64, in float32 and bf16."""
    for dtype, tolerance in ((each, OPERATION_TOLERANCES[each]) for each in (torch.float32, torch.bfloat16)):
        checks: dict[str, Callable[[], float]] = {
            "dropout, add and norm": partial(residual_error, device, dtype, 0.3),
            "softmax to gradient": partial(softmax_error, device, dtype),
            "rectifier": partial(rectifier_error, device, dtype),
        }
        for kind, attend in KINDS.items():
            if kind == "flash" and not (device.type == "cuda" and dtype == torch.bfloat16):
                continue
            for causal in (False, True):
                name = f"{kind} {'causal' if causal else 'cross'} attention"
                checks[name] = partial(attention_error, attend, device, dtype, causal=causal)
        for name, check in checks.items():
            with matrix_products(tf32=False):
                error = check()
            yield Comparison(
                f"{name} in {str(dtype).removeprefix('torch.')}", None, error, tolerance, error < tolerance
            )
