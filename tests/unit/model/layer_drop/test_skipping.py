"""Skipped layers, against a model without any layers."""

from unittest.mock import patch

import pytest
import torch
from torch import nn

from nmt.config.compose import compose
from nmt.config.registry import CHOICES
from nmt.errors import ConfigError
from nmt.model import layer_drop as skipping
from nmt.model.build import build_model
from nmt.training.objective import Objective
from tests.unit.model.reference import model_with
from tests.unit.model.test_dropout import SMALL, WORDS, batch


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
def test_skipped_layers_are_left_out_and_have_gradients_of_zero(architecture: str, precision: torch.dtype) -> None:
    torch.manual_seed(1)
    config = model_with(SMALL, layer_drop=0.5, architecture=architecture)
    model = build_model(config, WORDS, WORDS).to(precision)
    stacks = [name for name in ("encoder", "decoder") if hasattr(model, name)]
    with patch.object(skipping, "skips_layer", lambda _: True):
        skipped = Objective(model, 0.1)(batch())
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = dict(zip(names, torch.autograd.grad(skipped.smoothed, parameters), strict=True))
    for name, gradient in gradients.items():
        assert bool((gradient == 0).all()) == name.startswith(tuple(f"{stack}." for stack in stacks)), name
    with patch.object(skipping, "skips_layer", lambda _: False):
        kept = Objective(model, 0.1)(batch())
    assert torch.equal(kept.smoothed, Objective(model.eval(), 0.1).eval()(batch()).smoothed)
    for stack in stacks:
        setattr(model, stack, nn.ModuleList())
    torch.testing.assert_close(skipped.smoothed, Objective(model, 0.1).eval()(batch()).smoothed)


def test_layers_are_skipped_as_often_as_the_setting_says() -> None:
    torch.manual_seed(1)
    assert sum(skipping.skips_layer(0.2) for _ in range(2000)) == pytest.approx(400, abs=60)


def test_a_compiled_model_cannot_skip_layers() -> None:
    with pytest.raises(ConfigError, match=r"runtime.compile=true cannot be used with model.layer_drop"):
        compose(["model.layer_drop=0.1", "runtime.compile=true"])
