"""A training step on a GPU keeps to its budgets of launches, bytes, host reads and graphs, counted without a GPU."""

import json
import math
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from nmt.commands.describe import TYPICAL_LENGTH
from nmt.config.compose import compose
from nmt.estimate.hardware import DEVICES, precision_on
from nmt.estimate.operation import Part
from nmt.estimate.operations import Batch, step_operations
from nmt.estimate.parameters import count_parameters
from tests.unit.test_fake_cuda import SCRIPTS, needs_compiler

pytestmark = [needs_compiler, pytest.mark.slow]

BASE: tuple[str, ...] = ()
BIG = ("experiment=wmt14_en_de_big",)
V100 = ("runtime.precision=fp16",)
"""On a GPU without bf16, Triton's kernels and flash attention."""
BUDGETS = {
    V100: {"launches": 1200, "bytes": 105e9},
    BASE: {"launches": 900, "bytes": 62e9},
    BIG: {"launches": 900, "bytes": 110e9},
}
"""For a step of 25,000 source and 25,000 target tokens, without torch.compile."""
LOSS_BUDGET = {"launches": 100, "bytes": 15e9}
"""The part of them that the loss of base may take, with the gradients of its inputs."""
GRAPHS = 2
"""Graphs of a compiled model: one per side."""


SMALL_STEP = ("training.batch_tokens=5000",)
FORMULA = {
    "base": BASE,
    "big": BIG,
    "micro-batches": (*SMALL_STEP, "training.device_tokens=2600"),
    "pre-norm": (*SMALL_STEP, "model.norm_placement=pre", "model.activation=gelu"),
    "float32": (*SMALL_STEP, "runtime.precision=fp32"),
    "attention dropout": (*SMALL_STEP, "model.attention_dropout=0.1"),
    "attention dropout, float32": (*SMALL_STEP, "model.attention_dropout=0.1", "runtime.precision=fp32"),
    "ALiBi": (*SMALL_STEP, "model.positions=alibi"),
    "relative positions": (*SMALL_STEP, "model.positions=relative"),
    "V100": V100,
    "V100, small": (*SMALL_STEP, *V100),
    "V100, pre-norm": (*SMALL_STEP, *V100, "model.norm_placement=pre", "model.activation=gelu"),
    "V100, attention dropout": (*SMALL_STEP, *V100, "model.attention_dropout=0.1"),
    "V100, float32": (*SMALL_STEP, "runtime.precision=fp32", "seed=2"),
}
"""Settings for which the formula of `nmt describe` is compared with the counts; the names begin with the device."""
DEVICE_OF = {settings: "v100" if name.startswith("V100") else "h100" for name, settings in FORMULA.items()}


PHASES = {
    Part.FORWARD: ("forward",),
    Part.LOSS: ("loss",),
    Part.BACKWARD: ("backward",),
    Part.OPTIMIZER: ("norm", "optimizer", "other"),
}
"""The phases of the counts that the parts of the formula stand for."""
SETTINGS = [pytest.param(settings, id=name) for name, settings in FORMULA.items()]

PROGRAM = """
import json, sys
sys.path.insert(0, {scripts!r})
from fake_cuda.guard import register_device
register_device()
from fake_cuda.report import as_json, measure
print(json.dumps(as_json(measure({settings!r}, {device!r}, with_graphs=False))))
"""


@cache
def counts(settings: tuple[str, ...]) -> Any:
    """Return the counts of a step; a process registers the device before it imports torch."""
    program = PROGRAM.format(scripts=str(SCRIPTS), settings=list(settings), device=DEVICE_OF[settings])
    return json.loads(output([sys.executable, "-c", program]))


def output(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("settings", [each for each in SETTINGS if each.values[0] in BUDGETS])
def test_a_step_keeps_to_its_budgets_and_never_waits_for_the_device(settings: tuple[str, ...]) -> None:
    found = counts(settings)
    over = {name: found[name] for name, limit in BUDGETS[settings].items() if found[name] > limit}
    assert not over
    assert found["host_reads"] == 0
    assert found["flops"] > 0


def test_the_loss_keeps_to_its_budgets() -> None:
    found = counts(BASE)["phases"]["loss"]
    assert {name: found[name] for name, limit in LOSS_BUDGET.items() if found[name] > limit} == {}


def test_a_compiled_model_is_one_graph_per_side_for_all_batches() -> None:
    found = json.loads(output([sys.executable, str(SCRIPTS / "fake_cuda"), "--json", "model.layers=1"]))
    assert 0 < found["graphs"] <= GRAPHS
    assert found["graph_breaks"] == 0


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_formula_of_describe_agrees_with_the_counts(settings: tuple[str, ...]) -> None:
    found, config = counts(settings), compose(list(settings))
    words, training = config.tokenizer.vocab_size, config.training
    micro_batches = math.ceil(training.batch_tokens / (training.device_tokens or training.batch_tokens))
    tokens = training.batch_tokens // micro_batches
    device = DEVICES[DEVICE_OF[settings]]
    precision = precision_on(DEVICE_OF[settings], config.runtime.precision)
    batch = Batch(tokens, tokens, TYPICAL_LENGTH, precision, device.fused)
    size = count_parameters(config.model, words, words)
    operations = step_operations(config.model, size, (words, words), batch, micro_batches)
    seconds = sum(device.seconds(each.bytes, each.flops, precision) for each in operations)
    parts = {part: [each for each in operations if each.part == part] for part in Part}
    for part, phases in PHASES.items():
        milliseconds = 1000 * sum(device.seconds(each.bytes, each.flops, precision) for each in parts[part])
        counted = sum(found["phases"][phase]["milliseconds"] for phase in phases)
        assert milliseconds == pytest.approx(counted, rel=0.25), part
    assert sum(each.flops for each in operations) == pytest.approx(found["flops"], rel=0.03)
    assert sum(each.bytes for each in operations) == pytest.approx(found["bytes"], rel=0.1)
    assert len(operations) == pytest.approx(found["launches"], rel=0.15)
    assert 1000 * seconds == pytest.approx(found["milliseconds"], rel=0.1)
