"""Compare a device's results with float64 on the CPU, by relative norm."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.data import DataConfig
from nmt.config.keys import with_values
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config, RuntimeConfig
from nmt.data.store import PairStore
from nmt.training.build import build_trainer, training_batches
from shared.synthetic import synthetic_pairs
from tests.unit.model.backends import relative_error

WORDS = 1000
LONGEST, LONGEST_OF_LONG = 60, 200
"""Tokens of the longest sentence of the usual text, and of a text whose sentences exceed the largest tile."""
TOLERANCES = {"fp32": 2e-5, "tf32": 3e-2, "fp16": 3e-2, "bf16": 8e-2}
"""Largest relative error of the gradient of a small model, by the precision of matrix products.

float32 keeps 24 bits, TF32 and fp16 11 and bf16 8, so that a product is off by 6e-8, 5e-4 and 4e-3. Through the layers
and back the errors grow up to twentyfold: 4e-7 in float32 and 4e-2 in bf16 were measured on a CPU, and 9e-3 with the
products of a CPU rounded like TF32's."""
LOSS_TOLERANCES = {"fp32": 2e-6, "tf32": 1e-3, "fp16": 1e-3, "bf16": 5e-3}
"""The same for the loss, a mean over tokens, in which most of these errors cancel."""


class TrainingPath(NamedTuple):
    """A way to compute a training step."""

    name: str
    settings: Mapping[str, str | bool]
    precision: str
    """A key of TOLERANCES."""
    tf32: bool = True
    """Whether float32 matrix products may use TF32, which only GPUs have."""
    longest: int = LONGEST
    """Tokens of the longest sentence."""


def training_paths(device: str, half: str = "bf16", *, compiled: bool) -> list[TrainingPath]:
    """Return the paths that a device should be able to compute, in float32 and in its precision of 16 bits."""
    on_gpu = device == "cuda"
    products = {"fp32": "tf32" if on_gpu else "fp32"}
    plain = {
        name: TrainingPath(name, {"runtime.precision": name}, products.get(name, name))
        for name in dict.fromkeys(("fp32", half))
    }
    paths = list(plain.values())
    if on_gpu:
        paths.append(plain["fp32"]._replace(name="fp32 without TF32", precision="fp32", tf32=False))
    paths.append(_with(plain[half], "without kernels", {"runtime.kernels": False}))
    if compiled:
        paths += [_with(each, "compiled", {"runtime.compile": True}) for each in plain.values()]
    return [*paths, plain[half]._replace(name=f"{half}, long sentences", longest=LONGEST_OF_LONG)]


def _with(path: TrainingPath, name: str, settings: Mapping[str, str | bool]) -> TrainingPath:
    return path._replace(name=f"{path.name} {name}", settings={**path.settings, **settings})


def small_run(device: str, longest: int = LONGEST) -> Config:
    """Return the settings of a small model without dropout."""
    return Config(
        model=ModelConfig(layers=2, d_model=128, d_ff=512, heads=2, dropout=0.0),
        training=TrainingConfig(batch_tokens=10 * longest),
        data=DataConfig(max_pieces=longest),
        runtime=RuntimeConfig(device=device, threads=1),
    )


class Step(NamedTuple):
    """The loss of a step and its gradient with respect to all weights."""

    loss: float
    gradient: Tensor


def training_step(config: Config, machine: Machine) -> Step:
    """Make one update with the real trainer, and return what it computed."""
    trainer = build_trainer(config, machine, (WORDS, WORDS))
    if machine.precision == torch.float64:
        trainer.model.double()
    gradients = list[Tensor]()

    def keep(*_: object) -> None:
        gradients[:] = (each.grad.detach().double().cpu().flatten() for each in parameters if each.grad is not None)

    parameters = list(trainer.model.parameters())
    trainer.optimizer.register_step_pre_hook(keep)
    batch = next(training_batches(trainer, _text(config.data.max_pieces)))
    trainer.update(batch)
    while trainer.loss_scale is not None and not trainer.gradient_norm.isfinite():  # fp16: it overflowed
        trainer.update(batch)  # nothing was changed but the scale
    return Step(trainer.take_statistics().loss, torch.cat(gradients))


def _text(longest: int) -> PairStore:
    """Return a text with sentences of about that length if that is long."""
    if longest == LONGEST_OF_LONG:
        return synthetic_pairs(WORDS, WORDS, pairs=500, median_length=3 * longest // 4, max_length=longest)
    return synthetic_pairs(WORDS, WORDS, pairs=500, max_length=longest)


def exact_step(longest: int = LONGEST) -> Step:
    """Return the step in float64 on the CPU."""
    return training_step(small_run("cpu", longest), Machine(torch.device("cpu"), torch.float64))


def is_correct(path: TrainingPath, device: str, exact: Step) -> bool:
    """Return whether a training step on a device agrees with the exact one, of the same text."""
    config = with_values(small_run(device, path.longest), path.settings)
    machine = prepare_machine(config.runtime)
    with matrix_products(tf32=path.tf32):
        step = training_step(config, machine)
    loss_error, error = abs(step.loss / exact.loss - 1), relative_error(step.gradient, exact.gradient)
    return loss_error < LOSS_TOLERANCES[path.precision] and error < TOLERANCES[path.precision]


@contextmanager
def matrix_products(*, tf32: bool) -> Iterator[None]:
    """Let float32 matrix products use TF32 in this block if the process does, or never."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
