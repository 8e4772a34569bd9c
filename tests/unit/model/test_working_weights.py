"""Copies of the weights in bf16, with which training multiplies."""

from contextlib import suppress

import pytest
import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.working_weights import WorkingWeights
from tests.unit.model.backends import BF16, stream

CONFIG = ModelConfig(layers=2, d_model=64, d_ff=128, heads=4, dropout=0.0, positions="rotary")
SOURCE, TARGET = stream([5, 31, 1]), stream([9, 1, 44])


@pytest.fixture
def model() -> TranslationModel:
    torch.manual_seed(1)
    return build_model(CONFIG, 30, 30)


def gradient(model: TranslationModel) -> Tensor:
    (found,) = torch.autograd.grad(model(SOURCE, TARGET).float().square().sum(), [model.projection])
    return found


def copies(model: TranslationModel) -> dict[str, Tensor]:
    """Return the copies that the model uses now, by the names of the weights."""
    return {
        f"{prefix}.{name}": copy.clone()
        for prefix, module in model.named_modules()
        for name, copy in (getattr(module, "copies", None) or {}).items()
    }


def test_copies_follow_the_weights_and_are_used_in_the_block_only(model: TranslationModel) -> None:
    working, expected = WorkingWeights(model, BF16), gradient(model)
    with suppress(ZeroDivisionError), working.active():
        assert model(SOURCE, TARGET).dtype == BF16
        raise ZeroDivisionError
    assert not copies(model)
    assert torch.equal(gradient(model), expected)
    with torch.no_grad():
        model.projection.mul_(0.5)
    with working.active():
        weights = dict(model.named_parameters())
        assert all(torch.equal(copy, weights[name].bfloat16()) for name, copy in copies(model).items())


def test_a_frequent_token_loses_none_of_its_gradients(model: TranslationModel) -> None:
    with WorkingWeights(model, BF16).active():
        rows = model.vectors("source", torch.ones(3000, dtype=torch.int64))
    (rows / model.vectors.scale).sum().backward()
    assert model.projection.grad is not None
    assert model.projection.grad[1].tolist() == [3000.0] * 64  # in bf16 the sum would stop at 256


@pytest.mark.slow
def test_a_compiled_forward_has_one_graph_for_all_steps(model: TranslationModel) -> None:
    working, graphs = WorkingWeights(model, BF16), list[torch.fx.GraphModule]()

    def count(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(lambda: model(SOURCE, TARGET), backend=count, fullgraph=True)
    for _ in range(3):
        with working.active():
            (found,) = torch.autograd.grad(compiled().float().square().sum(), [model.projection])
            torch.testing.assert_close(found, gradient(model))
        with torch.no_grad():
            model.projection.mul_(0.5)
    assert len(graphs) == 1
