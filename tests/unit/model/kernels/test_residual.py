"""The fused residual connection against torch's LayerNorm in float64, and its dropout masks."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.kernels.backend import uses_triton
from nmt.model.kernels.residual import dropout_add, dropout_add_norm
from tests.unit.model.kernels import plain_only

SEED = torch.tensor([-(1 << 62) + 12345])
EPS = 1e-5


def mask(rows: int, width: int, probability: float, seed: Tensor = SEED, site: int = 3) -> Tensor:
    """Return the mask that the operations use: 1 for coordinates that are kept."""
    dropped = dropout_add(torch.zeros(rows, width), torch.ones(rows, width), probability, seed, site)
    return dropped * (1 - probability)


def inputs(rows: int, width: int, dtype: torch.dtype) -> list[Tensor]:
    """Return stream, branch, gain, bias and a gradient."""
    random = torch.Generator().manual_seed(1)
    shapes = [(rows, width), (rows, width), (width,), (width,), (rows, width)]
    tensors = [torch.randn(shape, generator=random) for shape in shapes]
    return [each.to(dtype) if each.dim() == 2 else each for each in tensors]


def assert_close(ours: Tensor, expected: Tensor) -> None:
    """Compare by relative norm; the precision is that of `ours`."""
    error = (ours.double() - expected).norm() / expected.norm()
    assert error < (1e-6 if ours.dtype == torch.float32 else 2**-7), error


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a program of the backward pass have several rows."""
    if uses_triton(torch.zeros(1)):
        from nmt.model.kernels import triton_residual

        monkeypatch.setattr(triton_residual, "NORM_PROGRAMS", 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.0, 0.3])
@pytest.mark.parametrize(("rows", "width"), [(5, 24), (1, 1), (20, 8)])
def test_result_and_gradients_equal_those_of_torch_in_float64(
    rows: int, width: int, probability: float, dtype: torch.dtype
) -> None:
    if width == 1 and probability:
        pytest.skip("a row of one coordinate is normalised to zero")
    *tensors, gradient = inputs(rows, width, dtype)
    ours = [each.clone().requires_grad_() for each in tensors]
    exact = [each.double().requires_grad_() for each in tensors]
    stream, branch, gain, bias = ours
    normed = dropout_add_norm(stream, branch, gain, bias, probability, SEED, 3, EPS)
    kept = mask(rows, width, probability).double() / (1 - probability)
    expected = F.layer_norm(exact[0] + exact[1] * kept, (width,), exact[2], exact[3], EPS)
    assert normed.dtype == dtype
    assert_close(normed.detach(), expected.detach())
    gradients = torch.autograd.grad(normed, ours, gradient)
    for each, truth, like in zip(gradients, torch.autograd.grad(expected, exact, gradient.double()), ours, strict=True):
        assert each.dtype == like.dtype
        if width > 1 or like is ours[3]:
            assert_close(each, truth)
        else:
            assert each.abs().max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.0, 0.3])
def test_sum_and_gradients_without_a_norm_equal_those_of_torch(probability: float, dtype: torch.dtype) -> None:
    stream, branch, *_, gradient = inputs(70, 24, dtype)
    stream, branch = stream.requires_grad_(), branch.requires_grad_()
    added = dropout_add(stream, branch, probability, SEED, 3)
    kept = mask(70, 24, probability).double() / (1 - probability)
    assert_close(added.detach(), stream.detach().double() + branch.detach().double() * kept)
    grad_stream, grad_branch = torch.autograd.grad(added, [stream, branch], gradient)
    assert grad_stream.equal(gradient)
    assert_close(grad_branch, gradient.double() * kept)


def test_views_with_gaps_give_the_same_result() -> None:
    stream, branch, gain, bias, _ = inputs(6, 16, torch.float32)
    expected = dropout_add_norm(stream, branch, gain, bias, 0.3, SEED, 3)
    spread = torch.zeros(6, 32)
    spread[:, ::2] = stream
    turned = branch.T.contiguous().T
    assert dropout_add_norm(spread[:, ::2], turned, gain, bias, 0.3, SEED, 3).equal(expected)


@plain_only
def test_gradients_agree_with_finite_differences() -> None:
    stream, branch, gain, bias, _ = (each.double().requires_grad_() for each in inputs(3, 5, torch.float32))

    def normed(stream: Tensor, branch: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return dropout_add_norm(stream, branch, gain, bias, 0.3, SEED, 3)

    assert torch.autograd.gradcheck(normed, (stream, branch, gain, bias))


def mix(word: int) -> int:
    word = ((word ^ (word >> 16)) * 0x7FEB352D) % (1 << 32)
    word = ((word ^ (word >> 15)) * 0x846CA68B) % (1 << 32)
    return word ^ (word >> 16)


@pytest.mark.parametrize("seed", [0, 5, -1, -(1 << 63), (1 << 63) - 1])
@pytest.mark.parametrize("site", [0, 1, 40])
def test_mask_is_a_function_of_seed_site_and_index_alone(seed: int, site: int) -> None:
    first = mix(seed % (1 << 32) ^ mix(site))
    second = mix((seed >> 32) % (1 << 32) ^ first)
    bits = [mix(mix(index ^ first) ^ second) >> 1 for index in range(60)]
    expected = torch.tensor([each >= round(0.3 * (1 << 31)) for each in bits]).view(3, 20).float()
    torch.testing.assert_close(mask(3, 20, 0.3, torch.tensor([seed]), site), expected)


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_masks_drop_the_given_share_independently(probability: float) -> None:
    rows, width = 400, 64
    deviation = math.sqrt(probability * (1 - probability))
    masks = [mask(rows, width, probability, torch.tensor([seed]), site) for seed, site in ((1, 0), (1, 1), (2, 0))]
    noise = [(each - (1 - probability)) / deviation for each in masks]  # mean 0 and variance 1
    for each in noise:
        assert abs(each.mean()) < 4 / math.sqrt(rows * width)
        assert each.mean(0).abs().max() < 5 / math.sqrt(rows)
        assert each.mean(1).abs().max() < 5 / math.sqrt(width)
        for moved in (each.roll(1, 0), each.roll(1, 1), each.roll(2, 1)):
            assert abs((each * moved).mean()) < 4 / math.sqrt(rows * width)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs((noise[one] * noise[other]).mean()) < 4 / math.sqrt(rows * width)


@plain_only
@pytest.mark.parametrize("operation", ["dropout_add_norm", "dropout_add"])
def test_operation_is_registered_correctly(operation: str) -> None:
    stream, branch, gain, bias, _ = inputs(3, 8, torch.float32)
    tensors = (stream, branch, gain, bias) if operation == "dropout_add_norm" else (stream, branch)
    arguments = (*(each.requires_grad_() for each in tensors), 0.3, SEED, 3)
    arguments = (*arguments, EPS) if operation == "dropout_add_norm" else arguments
    torch.library.opcheck(getattr(torch.ops.nmt, operation).default, arguments)
