"""What a device computes in training, compared with float64 on the CPU; `make test-all` tries a GPU if there is one.

The same comparison runs on the CPU in the quick tests, so that it is known to work before a GPU is at hand.
"""

from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.keys import with_values
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config, RuntimeConfig
from nmt.data.store import PairStore
from nmt.training.build import build_trainer, training_batches
from shared.synthetic import synthetic_pairs
from tests.integration import test_training
from tests.integration.toy import run
from tests.unit.model.backends import relative_error

ON_GPU = [pytest.mark.gpu, pytest.mark.slow]
WORDS = 1000
LONGEST, LONGEST_OF_LONG = 60, 200
"""Tokens of the longest sentence of the usual text, and of a text whose sentences exceed the largest tile."""
TOLERANCES = {"fp32": (2e-6, 2e-5), "tf32": (1e-3, 3e-2), "bf16": (5e-3, 8e-2)}
"""Largest relative errors of the loss, a mean in which most errors cancel, and of the gradient of a small model.

float32 keeps 24 bits, TF32 11 and bf16 8, so that a product is off by 6e-8, 5e-4 and 4e-3. Through the layers and back
the errors grow up to twentyfold: 4e-7 in float32 and 4e-2 in bf16 were measured on a CPU, and 9e-3 with the products of
a CPU rounded like TF32's."""
BF16 = {"runtime.precision": "bf16"}
CASES: list[tuple[str, dict[str, Any], str, int]] = [
    ("fp32", {"runtime.precision": "fp32"}, "fp32", LONGEST),
    ("bf16", BF16, "bf16", LONGEST),
    ("bf16 without kernels", {**BF16, "runtime.kernels": False}, "bf16", LONGEST),
]
CASES_OF_GPUS: list[tuple[str, dict[str, Any], str, int]] = [
    *CASES,
    ("bf16, long sentences", BF16, "bf16", LONGEST_OF_LONG),
    ("fp32 with TF32", {"runtime.precision": "fp32"}, "tf32", LONGEST),
    ("bf16 compiled", {**BF16, "runtime.compile": True}, "bf16", LONGEST),
    ("fp32 compiled", {"runtime.precision": "fp32", "runtime.compile": True}, "tf32", LONGEST),
]


class Step(NamedTuple):
    """The loss of a step and its gradient with respect to all weights."""

    loss: float
    gradient: Tensor


def text(longest: int) -> PairStore:
    if longest == LONGEST_OF_LONG:
        return synthetic_pairs(WORDS, WORDS, pairs=500, median_length=3 * longest // 4, max_length=longest)
    return synthetic_pairs(WORDS, WORDS, pairs=500, max_length=longest)


def small_run(device: str, longest: int = LONGEST) -> Config:
    return with_values(
        Config(
            model=ModelConfig(layers=2, d_model=128, d_ff=512, heads=2, dropout=0.0),
            training=TrainingConfig(batch_tokens=10 * longest),
            runtime=RuntimeConfig(device=device, threads=1),
        ),
        {"data.max_pieces": longest},
    )


def training_step(config: Config, machine: Machine) -> Step:
    """Make one update with the real trainer, and return what it computed."""
    trainer = build_trainer(config, machine, (WORDS, WORDS))
    if machine.precision == torch.float64:
        trainer.model.double()
    parameters, gradients = list(trainer.model.parameters()), list[Tensor]()

    def keep(*_: object) -> None:
        gradients[:] = (each.grad.detach().double().cpu().flatten() for each in parameters if each.grad is not None)

    trainer.optimizer.register_step_pre_hook(keep)
    trainer.update(next(training_batches(trainer, text(config.data.max_pieces))))
    return Step(trainer.take_statistics().loss, torch.cat(gradients))


@cache
def exact_step(longest: int) -> Step:
    return training_step(small_run("cpu", longest), Machine(torch.device("cpu"), torch.float64))


@pytest.mark.parametrize(
    ("device", "settings", "precision", "longest"),
    [
        *(pytest.param("cpu", *case, id=f"cpu {name}") for name, *case in CASES),
        *(pytest.param("cuda", *case, id=f"gpu {name}", marks=ON_GPU) for name, *case in CASES_OF_GPUS),
    ],
)
def test_training_step_equals_float64(device: str, settings: dict[str, Any], precision: str, longest: int) -> None:
    config, before = with_values(small_run(device, longest), settings), torch.get_float32_matmul_precision()
    machine = prepare_machine(config.runtime)
    if precision == "fp32":
        torch.set_float32_matmul_precision("highest")
    try:
        found, exact = training_step(config, machine), exact_step(longest)
    finally:
        torch.set_float32_matmul_precision(before)
    of_loss, of_gradient = TOLERANCES[precision]
    assert found.loss == pytest.approx(exact.loss, rel=of_loss)
    assert relative_error(found.gradient, exact.gradient) < of_gradient


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    "runtime",
    [
        ["runtime.precision=bf16"],
        ["runtime.precision=bf16", "runtime.compile=true"],
        ["runtime.precision=bf16", "runtime.kernels=false"],
        ["runtime.precision=fp32"],
    ],
    ids=["usual", "compiled", "without kernels", "fp32"],
)
def test_training_on_a_gpu_learns_and_resumes(settings: list[str], tmp_path: Path, runtime: list[str]) -> None:
    command = ["train", *settings, "runtime.device=cuda", *runtime]
    for outputs, ends in (("resumed", (20, 40)), ("whole", (40,))):
        for steps in ends:
            done = run([*command, f"training.steps={steps}", f"paths.outputs={tmp_path / outputs}"])
            assert done.returncode == 0, done.stderr
            assert ("going on from step 20" in done.stdout) == ((outputs, steps) == ("resumed", 40))
    resumed, whole = ([loss for _, loss, _ in test_training.losses(tmp_path / each)] for each in ("resumed", "whole"))
    assert len(resumed) == 40
    assert resumed[-1] < resumed[0] - 0.5
    # flash attention adds up the gradients of queries in any order
    assert resumed == pytest.approx(whole, rel=1e-2)


@pytest.mark.gpu
@pytest.mark.slow
def test_recorded_passes_train_as_passes_without_graphs_do() -> None:
    """Two sizes of batches in turn: from the third time on, a graph stands for the passes of each."""
    results = []
    for graphs in (False, True):
        config = with_values(small_run("cuda"), {"model.dropout": 0.1, "runtime.cuda_graphs": graphs})
        trainer = build_trainer(config, prepare_machine(config.runtime), (WORDS, WORDS))
        batches = list(islice(training_batches(trainer, text(LONGEST)), 2))
        for _ in range(6):
            for batch in batches:
                trainer.update(batch)
        results.append((trainer.take_statistics().loss, float(trainer.gradient_norm)))
        assert (trainer.gradient.passes is not None) is graphs
    assert results[1] == pytest.approx(results[0], rel=1e-5)
