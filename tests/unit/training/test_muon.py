"""Muon against its definition with singular values in float64, and against torch's own AdamW."""

import pytest
import torch
from torch import Tensor, nn

from nmt.data.store import PairStore
from nmt.training.muon import ITERATIONS, POLYNOMIAL, SAFETY, Muon, orthogonal
from nmt.training.schedule import learning_rate
from tests.unit.training.test_trainer import MODEL, TRAINING, batches_of, store, trainer, training_with, weights

__all__ = ["store"]
MUON = training_with(optimizer="muon", weight_decay=0.1)
SHAPES = [(16, 16), (16, 64), (64, 16), (1, 7)]


def by_singular_values(matrix: Tensor) -> Tensor:
    """Return what `orthogonal` computes, from the singular value decomposition in float64."""
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    values = values / (SAFETY * values.pow(8).sum().pow(1 / 8))
    a, b, c = POLYNOMIAL
    for _ in range(ITERATIONS):
        values = a * values + b * values**3 + c * values**5
    product: Tensor = (left * values) @ right
    return product


@pytest.mark.parametrize("narrow", [0, 128])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("precision", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5), (torch.bfloat16, 0.15)]
)
def test_singular_values_pass_through_the_polynomials(
    shape: tuple[int, int], precision: torch.dtype, tolerance: float, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.training.muon.NARROW", narrow)
    torch.manual_seed(1)
    # the mean gradient of a layer without gradients gets ever smaller
    sizes = torch.tensor([1e-34, 1e-26, 1e-22, 1e-20, 1e-6, 1.0, 1e6], dtype=torch.float64)
    matrices = torch.randn(7, *shape, dtype=torch.float64) * sizes.view(7, 1, 1)
    if precision == torch.float32:
        matrices = matrices.float()
    found = orthogonal(matrices, precision)
    assert found.dtype == matrices.dtype
    for matrix, result in zip(matrices, found, strict=True):
        exact = by_singular_values(matrix)
        assert (result.double() - exact).norm() < tolerance * exact.norm()
    assert not orthogonal(torch.zeros(2, *shape), precision).any()


@pytest.mark.parametrize("muon_rate", [1.0, 0.4])
def test_layers_get_muon_and_everything_else_gets_adam(muon_rate: float, store: PairStore) -> None:
    config = training_with(MUON, muon_rate=muon_rate)
    ours, plain = trainer(config), trainer(config).model
    named = dict(plain.named_parameters())
    matrices = {
        name
        for name in named
        if name.endswith(("value.weight", "query.weight", "output.weight", "ner.weight", "outer.weight"))
    }
    assert len(matrices) == 4 + 7  # self-attention 2, cross-attention 3, feed-forward 2
    decayed = [weight for name, weight in named.items() if name not in matrices and weight.dim() > 1]
    vectors = [weight for weight in named.values() if weight.dim() == 1]
    means = {name: torch.zeros_like(named[name]) for name in matrices}
    adam = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        betas=(TRAINING.adam_beta1, TRAINING.adam_beta2), eps=TRAINING.adam_eps,
    )  # fmt: skip
    reader = trainer(config)
    for step, batch in enumerate(batches_of(store, MUON, 6), start=1):
        ours.update(batch)
        reader.model.load_state_dict(plain.state_dict())
        reader.gradient.add(batch, step)
        for name, weight in reader.model.named_parameters():
            named[name].grad, weight.grad = weight.grad, None
        rate = learning_rate(step, MUON, MODEL.d_model)
        for group in adam.param_groups:
            group["lr"] = rate
        adam.step()
        for name in matrices:
            muon_step(named[name], means[name], muon_rate * rate)
        for name, weight in plain.state_dict().items():
            torch.testing.assert_close(ours.model.state_dict()[name], weight, rtol=0, atol=1e-4, msg=name)


@torch.no_grad()
def muon_step(weight: nn.Parameter, mean: Tensor, rate: float) -> None:
    """Update a weight by Muon's definition, with the singular value decomposition."""
    assert weight.grad is not None
    mean.mul_(0.95).add_(weight.grad, alpha=0.05)
    direction = by_singular_values(0.05 * weight.grad + 0.95 * mean)
    weight.mul_(1 - 0.1 * rate).sub_(rate * 0.2 * max(weight.shape) ** 0.5 * direction)


def test_a_gpu_skips_a_step_without_being_waited_for(store: PairStore) -> None:
    (batch,) = batches_of(store, MUON, 1)
    ours = trainer(MUON)
    ours.update(batch)
    muon, before = ours.optimizer, weights(ours)
    assert isinstance(muon, Muon)
    matrices = muon.param_groups[0]
    means = [muon.state[each]["momentum_buffer"].clone() for each in matrices["params"]]
    for value, taken in ((torch.nan, False), (0.5, True)):
        for weight in matrices["params"]:
            weight.grad = torch.full_like(weight, value)
        muon.update_matrices(matrices, torch.tensor(taken))
        same = [torch.equal(value, before[name]) for name, value in weights(ours).items()]
        assert all(same) != taken
        found = [muon.state[each]["momentum_buffer"] for each in matrices["params"]]
        assert all(map(torch.equal, found, means)) != taken
