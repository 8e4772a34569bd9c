"""Marian's sinusoids and its zero start."""

import math

import pytest
import torch

from nmt.cli import main
from nmt.compute.machine import Machine
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.features.marian_training.positions import MarianSinusoids
from nmt.features.marian_training.zero_start import ZeroStart
from nmt.model.build import build_model
from nmt.model.positions.base import Places
from nmt.text.special import BOS
from nmt.training.objective import Objective
from nmt.training.replicas import Replicas

WORDS = 12


def test_each_pair_of_coordinates_turns_with_marians_frequency() -> None:
    width, length = 8, 300
    encoding = MarianSinusoids(ModelConfig(d_model=width, heads=1, positions="marian"))
    found = encoding.add(torch.zeros(length, width), Places(torch.arange(length), length), None)
    for position in (0, 1, 7, 299):
        for pair in range(width // 2):
            angle = position * math.exp(-pair * math.log(10_000) / (width // 2 - 1))
            expected = [math.sin(angle), math.cos(angle)]
            assert found[position, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("tied", [True, False])
def test_translations_begin_with_a_zero_vector_before_training_and_after_a_step(tied: bool) -> None:
    model = build_model(ModelConfig(d_model=8, d_ff=8, heads=2, layers=1, tie_embeddings=tied), WORDS, WORDS)
    others = model.state_dict()["encoder.0.feed_forward.inner.weight"].clone()
    hook = ZeroStart()
    hook.prepare(model)
    table = dict(model.named_parameters())["vectors.shared" if tied else "vectors.target"]
    assert not table[BOS].any()
    hook.begin(Replicas(Objective(model, 0.1), Machine(torch.device("cpu"), torch.float32), TrainingConfig()))
    with torch.no_grad():
        table.add_(1)
    before = table.clone()
    hook.after_step(1, torch.tensor(True))
    assert not table[BOS].any()
    rest = torch.arange(WORDS) != BOS
    assert torch.equal(table[rest], before[rest])
    assert torch.equal(model.state_dict()["encoder.0.feed_forward.inner.weight"], others)


@pytest.mark.parametrize("width", [2, 7])
def test_a_width_without_two_pairs_is_refused(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "model.positions=marian", "model.heads=1", f"model.d_model={width}"]) == 2
    assert f"model.d_model={width} must be even and at least 4" in capsys.readouterr().err
