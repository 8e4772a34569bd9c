"""Training in bf16 with copies of the weights, against float64 and against autocast on torch's own modules."""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute.workers import run_in_threads
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.data.loader import MicroBatch
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.model.word_vectors import WordVectors
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective

BASE = ModelConfig(layers=2, d_model=64, d_ff=128, heads=4, dropout=0.0)
WORDS = 200


def model_of(config: ModelConfig = BASE) -> TranslationModel:
    torch.manual_seed(1)
    return build_model(config, WORDS, WORDS)


def text() -> MicroBatch:
    random = torch.Generator().manual_seed(2)

    def stream(lengths: list[int]) -> Packed:
        tokens = torch.randint(4, WORDS, (sum(lengths),), generator=random)
        return Packed.from_lengths(tokens, torch.tensor(lengths))

    source, target = stream([5, 31, 1, 17, 20]), stream([9, 1, 44, 8, 21])
    labels = torch.randint(4, WORDS, (len(target.tokens),), generator=random)
    return MicroBatch(source, target, labels, np.arange(5))


def gradient(model: TranslationModel, batch: MicroBatch) -> Tensor:
    """Return the gradient of the loss with respect to all weights, in float64."""
    gradients = torch.autograd.grad(Objective(model, 0.1)(batch).smoothed, list(model.parameters()))
    return torch.cat([each.flatten().double() for each in gradients])


def error(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def copies(model: TranslationModel) -> dict[str, Tensor]:
    """Return the copies that the model uses now, by the names of the weights."""
    return {
        f"{prefix}.{name}": copy
        for prefix, module in model.named_modules()
        for name, copy in (getattr(module, "copies", None) or {}).items()
    }


def test_all_matrices_of_products_have_a_copy() -> None:
    model = model_of()
    with WorkingWeights(model, torch.bfloat16).active():
        found = copies(model)
    vectors = ("norm.weight", "norm.bias")  # what norms multiply by stays float32
    assert sorted(found) == sorted(name for name, _ in model.named_parameters() if not name.endswith(vectors))
    assert all(each.dtype == torch.bfloat16 and not each.requires_grad for each in found.values())


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_other_precisions_need_no_copies(precision: torch.dtype) -> None:
    model = model_of()
    with WorkingWeights(model, precision).active():
        assert not copies(model)


def change_in_place(model: TranslationModel) -> None:
    with torch.no_grad():
        model.projection.mul_(0.5)


def load(model: TranslationModel) -> None:
    model.load_state_dict({name: 2 * value for name, value in model.state_dict().items()})


def average(model: TranslationModel) -> None:
    weights = [each.detach() for each in model.parameters()]
    torch._foreach_lerp_(weights, [torch.ones_like(each) for each in weights], 0.5)


@pytest.mark.parametrize("change", [change_in_place, load, average])
def test_copies_follow_every_change_of_the_weights(change: Callable[[TranslationModel], None]) -> None:
    model = model_of()
    working = WorkingWeights(model, torch.bfloat16)
    with working.active():
        before = {name: each.clone() for name, each in copies(model).items()}
    change(model)
    with working.active():
        after = copies(model)
        weights = dict(model.named_parameters())
        assert all(torch.equal(copy, weights[name].bfloat16()) for name, copy in after.items())
        assert not all(torch.equal(copy, before[name]) for name, copy in after.items())


def test_the_model_is_a_float32_model_outside_the_block() -> None:
    model, batch = model_of(), text()
    expected = gradient(model, batch)
    working = WorkingWeights(model, torch.bfloat16)
    with suppress(ZeroDivisionError), working.active():
        assert model(batch.source, batch.target).dtype == torch.bfloat16
        raise ZeroDivisionError
    assert not copies(model)
    assert torch.equal(gradient(model, batch), expected)


@pytest.mark.parametrize(
    "config",
    [
        BASE,
        replace(BASE, norm="rms", activation="swiglu"),
        replace(BASE, positions="learned", tie_embeddings=False),
        replace(BASE, activation="gelu", norm_placement="pre"),
        replace(BASE, activation="swish", output_bias=True),
        *(replace(BASE, positions=name) for name in CHOICES["model.positions"]),
        *(replace(BASE, architecture=name) for name in CHOICES["model.architecture"]),
    ],
    ids=["paper", "rms", "learned", "gelu", "swish", *CHOICES["model.positions"], *CHOICES["model.architecture"]],
)
def test_loss_and_gradient_in_bf16_are_near_those_in_float64(config: ModelConfig) -> None:
    model, batch = model_of(config), text()
    exact_model = deepcopy(model).double()
    exact, exact_loss = gradient(exact_model, batch), Objective(exact_model, 0.1)(batch).smoothed
    with WorkingWeights(model, torch.bfloat16).active():
        found, loss = gradient(model, batch), Objective(model, 0.1)(batch).smoothed
    assert loss.item() == pytest.approx(exact_loss.item(), rel=2e-3)
    assert error(found, exact) < 0.12  # rounded activations switch some units of the ReLU on or off
    assert error(gradient(model, batch), exact) < 1e-5


def test_a_frequent_token_loses_none_of_its_gradients() -> None:
    model = model_of(replace(BASE, positions="rotary"))
    with WorkingWeights(model, torch.bfloat16).active():
        vectors = next(module for module in model.modules() if isinstance(module, WordVectors))
        rows = vectors("source", torch.ones(3000, dtype=torch.int64))
    (rows / vectors.scale).sum().backward()
    assert model.projection.grad is not None
    assert model.projection.grad[1].tolist() == [3000.0] * 64  # in bf16 the sum would stop at 256


def test_threads_share_the_copies_and_compute_the_same_as_alone() -> None:
    model, batch = model_of(), text()
    with WorkingWeights(model, torch.bfloat16).active():
        (alone,) = run_in_threads(lambda _: with_one_thread(model, batch), range(1), 1)
        together = run_in_threads(lambda _: with_one_thread(model, batch), range(3), 3)
    assert all(torch.equal(each, alone) for each in together)


def with_one_thread(model: TranslationModel, batch: MicroBatch) -> Tensor:
    torch.set_num_threads(1)  # of this thread; the order of sums depends on their number
    return gradient(model, batch)


@pytest.mark.slow
def test_a_compiled_forward_has_one_graph_for_all_steps() -> None:
    model, batch = model_of(), text()
    working = WorkingWeights(model, torch.bfloat16)
    graphs: list[torch.fx.GraphModule] = []

    def count(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(lambda: model(batch.source, batch.target), backend=count, fullgraph=True)
    for _ in range(3):
        with working.active():
            expected = torch.autograd.grad(model(batch.source, batch.target).float().square().sum(), [model.projection])
            found = torch.autograd.grad(compiled().float().square().sum(), [model.projection])
        torch.testing.assert_close(found, expected)
        change_in_place(model)
    assert len(graphs) == 1
