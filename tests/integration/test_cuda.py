"""What a GPU computes, compared with float64 on the CPU; `make test-all` runs it if there is one.

The same comparisons run on the CPU in the quick tests, so that they are known to work before a GPU is at hand.
"""

import json
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.keys import with_values
from nmt.config.model import ModelConfig
from nmt.model.backends.chosen import choose
from nmt.model.backends.eager import Eager
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.model.working_weights import WorkingWeights
from nmt.training.build import build_trainer, training_batches
from shared.synthetic import synthetic_pairs
from tests.integration import accuracy
from tests.integration.toy import run
from tests.unit.model.backends import relative_error, using

GPU = (pytest.mark.gpu, pytest.mark.slow)
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]
SHAPES = {
    "paper": ModelConfig(layers=2, d_model=128, d_ff=256, heads=2, dropout=0.0),
    "narrow keys": ModelConfig(layers=2, d_model=128, d_ff=256, heads=2, d_k=16, dropout=0.0),
    "sixteen wide": ModelConfig(layers=2, d_model=128, d_ff=256, heads=8, dropout=0.0),
    "shared keys": ModelConfig(layers=2, d_model=128, d_ff=256, heads=4, kv_heads=2, dropout=0.0),
}
WORDS = 100


def streams(device: str = "cuda") -> tuple[Packed, Packed]:
    random = torch.Generator().manual_seed(1)
    sides = []
    for lengths in ([5, 31, 1, 17], [9, 1, 44, 8]):
        tokens = torch.randint(4, 90, (sum(lengths),), generator=random)
        sides.append(Packed.from_lengths(tokens, torch.tensor(lengths)).to(torch.device(device)))
    return sides[0], sides[1]


def output_and_gradients(config: ModelConfig, device: str, precision: torch.dtype) -> list[Tensor]:
    """Return the output of a model, and the gradients of a random linear loss of it.

    The output comes from a LayerNorm, so that the sum of its squares would be constant, and the gradients noise.
    """
    torch.manual_seed(1)
    model = build_model(config, WORDS, WORDS).to(torch.device(device))
    if precision == torch.float64:
        model.double()
    used = Eager() if precision == torch.float64 else choose(Machine(torch.device(device), precision), kernels=True)
    with using(used), WorkingWeights(model, precision).active():
        output = model(*streams(device))
    direction = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    output.backward(direction.to(output.device, output.dtype))
    # word vectors that do not occur have no gradient in some precisions, and zeros in others
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in model.parameters()]
    return [output.detach(), torch.cat([each.flatten() for each in gradients])]


@cache
def exact_output_and_gradients(config: ModelConfig) -> list[Tensor]:
    return output_and_gradients(config, "cpu", torch.float64)


def assert_near(found: list[Tensor], exact: list[Tensor], precision: str) -> None:
    for ours, expected in zip(found, exact, strict=True):
        assert relative_error(ours, expected) < accuracy.TOLERANCES[precision]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_model_in_bf16_equals_float64(config: ModelConfig, device: str) -> None:
    assert_near(output_and_gradients(config, device, torch.bfloat16), exact_output_and_gradients(config), "bf16")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_model_in_float32_without_tf32_equals_float64(config: ModelConfig, device: str) -> None:
    with accuracy.matrix_products(tf32=False):
        found = output_and_gradients(config, device, torch.float32)
    assert_near(found, exact_output_and_gradients(config), "fp32")


@cache
def exact_step(longest: int = accuracy.LONGEST) -> accuracy.Step:
    return accuracy.exact_step(longest)


@pytest.mark.parametrize("path", accuracy.training_paths("cpu", compiled=False), ids=lambda path: path.name)
def test_training_step_on_a_cpu_equals_float64(path: accuracy.TrainingPath) -> None:
    assert accuracy.is_correct(path, "cpu", exact_step(path.longest))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("path", accuracy.training_paths("cuda", compiled=True), ids=lambda path: path.name)
def test_training_step_on_a_gpu_equals_float64(path: accuracy.TrainingPath) -> None:
    assert accuracy.is_correct(path, "cuda", exact_step(path.longest))


@pytest.mark.parametrize("device", DEVICES)
def test_working_weights_follow_the_optimizer(device: str) -> None:
    """Change the weights as an optimizer does, and compare the output with that of a model with these weights."""
    config, place = SHAPES["paper"], torch.device(device)
    torch.manual_seed(1)
    model = build_model(config, WORDS, WORDS).to(place)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    weights = WorkingWeights(model, torch.bfloat16)
    with weights.active():
        before = model(*streams(device))
    before.float().sum().backward()
    optimizer.step()
    weights.outdate()
    with weights.active():
        after = model(*streams(device))
    fresh = build_model(config, WORDS, WORDS).to(place)
    fresh.load_state_dict(model.state_dict())
    with WorkingWeights(fresh, torch.bfloat16).active():
        expected = fresh(*streams(device))
    assert (after == expected).all()
    assert (after != before).any()


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
    command = ["train", *settings, f"paths.outputs={tmp_path}", "runtime.device=cuda", *runtime]
    first, second = (run([*command, f"training.steps={steps}"]) for steps in (20, 40))
    whole = run([*command, "training.steps=40", "name=whole"])
    assert first.returncode == second.returncode == whole.returncode == 0, first.stderr + second.stderr + whole.stderr
    assert "going on from step 20" in second.stdout
    found = losses(tmp_path / "toy")
    assert len(found) == 40
    assert found[-1] < found[0] - 0.5
    # flash attention adds up the gradients of queries in any order
    assert found == pytest.approx(losses(tmp_path / "whole"), rel=1e-2)


def losses(folder: Path) -> list[float]:
    """Return the losses of a run's log lines."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["event"] == "train"]


@pytest.mark.gpu
@pytest.mark.slow
def test_recorded_passes_train_as_passes_without_graphs_do() -> None:
    """Two sizes of batches in turn: from the third time on, a graph stands for the passes of each."""
    results = []
    for graphs in (False, True):
        config = accuracy.small_run("cuda")
        config = with_values(config, {"model.dropout": 0.1, "runtime.cuda_graphs": graphs})
        trainer = build_trainer(config, prepare_machine(config.runtime), (accuracy.WORDS, accuracy.WORDS))
        text = synthetic_pairs(accuracy.WORDS, accuracy.WORDS, pairs=500, max_length=accuracy.LONGEST)
        batches = list(islice(training_batches(trainer, text), 2))
        for _ in range(6):
            for batch in batches:
                trainer.update(batch)
        results.append((trainer.take_statistics().loss, float(trainer.gradient_norm)))
        assert (trainer.gradient.passes is not None) is graphs
    assert results[1] == pytest.approx(results[0], rel=1e-5)
