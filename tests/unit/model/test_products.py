"""Matrix products by oneDNN, compared with products in float64."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nmt.compute import cores
from nmt.model import products
from nmt.model.linear import Linear, activated
from nmt.model.products import exact_product, linear, multiply, multiply_into, prefers_onednn

ROWS, INPUTS, OUTPUTS = 96, 64, 160


@pytest.fixture(params=["AuthenticAMD AVX2", "AuthenticAMD AVX512", "GenuineIntel AVX512"])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Pretend that the processor is of this maker and has these instructions."""
    vendor, instructions = request.param.split()
    products._is_faster_here.cache_clear()
    monkeypatch.setattr(cores, "cpu_vendor", lambda: vendor)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: instructions)
    yield str(request.param)
    products._is_faster_here.cache_clear()


def _matrices() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = (ROWS, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,)
    rows, weight, bias = (torch.randn(shape, generator=generator) for shape in shapes)
    return rows, weight, bias


def _near(product: Tensor, exact: Tensor) -> bool:
    return torch.allclose(product.double(), exact, rtol=1e-5, atol=1e-4)


def test_products_equal_those_in_float64(processor: str) -> None:
    rows, weight, bias = _matrices()
    exact = rows.double() @ weight.double().T
    assert prefers_onednn(rows) == (processor == "AuthenticAMD AVX512" and torch.backends.mkldnn.is_available())
    assert _near(linear(rows, weight, bias), exact + bias.double())
    assert _near(linear(rows, weight, None), exact)
    assert _near(multiply(rows, weight.T), exact)
    assert _near(multiply(weight, rows.T), exact.T)
    assert _near(exact_product(rows, weight.T, torch.float32), exact)
    assert _near(multiply(rows, weight.T[:, : OUTPUTS // 2]), exact[:, : OUTPUTS // 2])
    result = torch.empty(2 * ROWS, OUTPUTS)
    multiply_into(result[ROWS:], rows, weight.T)
    assert _near(result[ROWS:], exact)


@pytest.mark.parametrize("count", [0, 1, 63, 64])
def test_products_of_any_number_of_rows_are_right(processor: str, count: int) -> None:
    rows, weight, bias = _matrices()
    expected = rows[:count].double() @ weight.double().T + bias.double()
    assert _near(linear(rows[:count], weight, bias), expected)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("rectify", [False, True])
def test_gradients_of_a_linear_layer_equal_those_in_float64(processor: str, rectify: bool, frozen: bool) -> None:
    torch.manual_seed(1)
    rows = _matrices()[0].requires_grad_()
    layer, exact_layer = Linear(INPUTS, OUTPUTS), torch.nn.Linear(INPUTS, OUTPUTS).double()
    exact_layer.load_state_dict(layer.state_dict())
    layer.weight.requires_grad_(not frozen)
    result = activated(layer, rows, torch.nn.functional.relu) if rectify else layer(rows)
    exact_rows = rows.detach().double().requires_grad_()
    exact = exact_layer(exact_rows).relu() if rectify else exact_layer(exact_rows)
    assert _near(result, exact)
    weights = torch.randn(exact.shape, dtype=torch.float64)
    (result * weights.float()).sum().backward()
    (exact * weights).sum().backward()
    assert rows.grad is not None
    assert exact_rows.grad is not None
    assert _near(rows.grad, exact_rows.grad)
    assert (layer.weight.grad is None) == frozen
    for ours, theirs in zip(layer.parameters(), exact_layer.parameters(), strict=True):
        assert ours.grad is None or (theirs.grad is not None and _near(ours.grad, theirs.grad))


def test_only_plain_matrices_in_float32_are_onednns() -> None:
    assert not prefers_onednn(torch.zeros(64, 64, dtype=torch.float64))
    assert not prefers_onednn(torch.zeros(64, 64, dtype=torch.bfloat16))
    assert not prefers_onednn(torch.zeros(2, 64, 64))
    assert not prefers_onednn(torch.zeros(64, 64, device="meta"))
