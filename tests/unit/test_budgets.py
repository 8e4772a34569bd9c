"""A training step on a GPU keeps to its budgets of launches, bytes and host reads, counted without a GPU."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.estimate.parameters import count_parameters, step_flops

SCRIPTS = Path(__file__).parents[2] / "scripts" / "dev"
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="needs a C++ compiler"
)
pytestmark = [needs_compiler, pytest.mark.slow]

BASE: tuple[str, ...] = ()
BIG = ("experiment=wmt14_en_de_big",)
BUDGETS = {BASE: {"launches": 900, "bytes": 62e9}, BIG: {"launches": 900, "bytes": 110e9}}
"""For a step of 25,000 source and 25,000 target tokens, without torch.compile."""

SMALL_STEP = ("training.batch_tokens=5000",)
FORMULA = {
    "base": BASE,
    "big": BIG,
    "gated": (*SMALL_STEP, "model.activation=swiglu", "model.norm=rms", "model.norm_placement=pre"),
    "grouped": (*SMALL_STEP, "model.kv_heads=2", "model.positions=rotary"),
    "float32": (*SMALL_STEP, "runtime.precision=fp32"),
    "muon": ("experiment=modern/wmt14_en_de_base", *SMALL_STEP),
}
"""Settings for which the FLOPs of `nmt describe` are compared with the counts."""


@cache
def counts(settings: tuple[str, ...]) -> Any:
    """Return the counts of a step."""
    command = [sys.executable, str(SCRIPTS / "fake_cuda"), *settings]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("settings", BUDGETS)
def test_a_step_keeps_to_its_budgets_and_never_waits_for_the_device(settings: tuple[str, ...]) -> None:
    found = counts(settings)
    over = {name: found[name] for name, limit in BUDGETS[settings].items() if found[name] > limit}
    assert not over
    assert found["host_reads"] == 0
    assert found["flops"] > 0


@pytest.mark.parametrize("settings", FORMULA.values(), ids=FORMULA)
def test_the_flops_of_describe_agree_with_the_counts(settings: tuple[str, ...]) -> None:
    config = compose(list(settings))
    words = config.tokenizer.vocab_size
    expected = step_flops(config, count_parameters(config.model, words, words), words)
    assert counts(settings)["flops"] == pytest.approx(expected, rel=0.03)
