"""The gradient of the cross-entropy in place of the logits, against torch in float64."""

import pytest
import torch
from torch.nn import functional as F

from nmt.model.kernels.softmax import softmax_gradient_
from tests.unit.model.kernels import plain_only


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("words", [1, 5, 4096, 9001])
def test_gradient_and_losses_equal_those_of_torch_in_float64(words: int, scale: float, dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(words)
    logits = (torch.randn(4, words, generator=random) * scale).to(dtype)
    labels = torch.tensor([0, words - 1, words // 2, 0])
    exact = logits.double()
    expected = torch.softmax(exact, -1) - 0.9 * F.one_hot(labels, words)
    normaliser, label_logit = softmax_gradient_(logits, labels, 0.1)
    assert logits.dtype == dtype
    # Triton's interpreter cuts bf16 numbers off, and the devices round them
    torch.testing.assert_close(logits.double(), expected, rtol=1e-5 if dtype == torch.float32 else 2**-7, atol=1e-7)
    assert normaliser.dtype == label_logit.dtype == torch.float32
    torch.testing.assert_close(normaliser.double(), exact.logsumexp(-1), rtol=1e-6, atol=1e-6)
    assert label_logit.double().equal(exact.gather(-1, labels[:, None])[:, 0])


def test_largest_and_smallest_logits_give_finite_results() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [-3e38, -3e38, -3e38]])
    normaliser, _ = softmax_gradient_(logits, torch.tensor([1, 2]), 0.0)
    torch.testing.assert_close(logits, torch.tensor([[1.0, -1.0, 0.0], [1 / 3, 1 / 3, -2 / 3]]))
    torch.testing.assert_close(normaliser, torch.tensor([1e4, -3e38]))


@plain_only
def test_operation_is_registered_correctly() -> None:
    arguments = (torch.randn(3, 7), torch.tensor([0, 6, 2]), 0.1)
    torch.library.opcheck(torch.ops.nmt.softmax_gradient_.default, arguments)
