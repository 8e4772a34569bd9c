"""The loss against torch's own cross-entropy, values and gradients."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.backends import eager
from nmt.training import loss as module
from nmt.training.loss import smoothed_cross_entropy

PAD = 1


def inputs(tokens: int = 37, words: int = 29, width: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(3)
    output = torch.randn(tokens, width, generator=random, dtype=torch.float64, requires_grad=True)
    projection = torch.randn(words, width, generator=random, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(2, words, (tokens,), generator=random)
    labels[[0, 5, tokens - 1]] = PAD
    return output, projection, labels


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.2])
@pytest.mark.parametrize(("rows_at_a_time", "rows_in_cache"), [(1, 1), (5, 3), (20, 7), (1000, 1000)])
def test_loss_and_gradients_equal_those_of_torch(
    smoothing: float, rows_at_a_time: int, rows_in_cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOGITS_PER_CHUNK", 29 * rows_at_a_time)
    monkeypatch.setattr(eager, "LOGITS_IN_CACHE", 29 * rows_in_cache)
    output, projection, labels = inputs()
    expected = F.cross_entropy(
        output @ projection.T, labels, ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )
    expected_gradients = torch.autograd.grad(expected * 0.37, [output, projection])
    losses = smoothed_cross_entropy(output, projection, labels, smoothing=smoothing, ignore=PAD)
    gradients = torch.autograd.grad(losses.smoothed * 0.37, [output, projection])
    torch.testing.assert_close(losses.smoothed, expected)
    torch.testing.assert_close(gradients, expected_gradients)
    plain = F.cross_entropy(output @ projection.T, labels, ignore_index=PAD, reduction="sum")
    torch.testing.assert_close(losses.nll, plain)


def test_extreme_logits_give_a_finite_loss_and_gradient() -> None:
    output = torch.tensor([[1e4], [-1e4]], requires_grad=True)
    projection = torch.tensor([[1.0], [-1.0], [0.5]], requires_grad=True)
    losses = smoothed_cross_entropy(output, projection, torch.tensor([1, 0]), smoothing=0.1, ignore=-1)
    losses.smoothed.backward()
    expected = F.cross_entropy(output @ projection.T, torch.tensor([1, 0]), label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(losses.smoothed, expected)
    assert output.grad is not None
    assert output.grad.isfinite().all()


def test_loss_and_gradients_in_bf16_are_close_to_float32() -> None:
    output, projection, labels = (part.float() if part.is_floating_point() else part for part in inputs())
    output, projection = output.detach().requires_grad_(), projection.detach().requires_grad_()
    exact = smoothed_cross_entropy(output, projection, labels, smoothing=0.1, ignore=PAD)
    exact_gradients = torch.autograd.grad(exact.smoothed, [output, projection])
    rough = smoothed_cross_entropy(output.bfloat16(), projection, labels, smoothing=0.1, ignore=PAD)
    gradients = torch.autograd.grad(rough.smoothed, [output, projection])
    assert rough.smoothed.dtype == torch.float32
    torch.testing.assert_close(rough.smoothed, exact.smoothed, rtol=2e-2, atol=0)
    for rough_gradient, exact_gradient in zip(gradients, exact_gradients, strict=True):
        assert F.cosine_similarity(rough_gradient.flatten(), exact_gradient.flatten(), dim=0) > 0.999


@pytest.mark.parametrize("needed", [0, 1])
def test_a_gradient_that_is_needed_alone_is_the_same(needed: int) -> None:
    output, projection, labels = inputs()
    both = smoothed_cross_entropy(output, projection, labels, smoothing=0.1, ignore=PAD)
    expected = torch.autograd.grad(both.smoothed, [output, projection])[needed]
    output.requires_grad_(needed == 0)
    projection.requires_grad_(needed == 1)
    losses = smoothed_cross_entropy(output, projection, labels, smoothing=0.1, ignore=PAD)
    torch.testing.assert_close(torch.autograd.grad(losses.smoothed, (output, projection)[needed])[0], expected)


def test_a_loss_over_sampled_words_is_exact_in_the_mean() -> None:
    output, projection, labels = inputs(tokens=40, words=200)
    output = (output.detach() / 4).requires_grad_()
    labels = labels % 20 + 2

    def loss_and_gradients(sampled_words: int) -> Tensor:
        losses = smoothed_cross_entropy(
            output, projection, labels, smoothing=0.1, ignore=PAD, sampled_words=sampled_words
        )
        gradients = torch.autograd.grad(losses.smoothed, [output, projection])
        return torch.cat([losses.smoothed.detach()[None] / 100, *(each.flatten() for each in gradients)])

    torch.manual_seed(5)
    exact = loss_and_gradients(0)
    torch.testing.assert_close(loss_and_gradients(200), exact)
    draws = torch.stack([loss_and_gradients(60) for _ in range(400)])
    assert (draws[0] - exact).norm() > 0.1 * exact.norm()
    assert (draws.mean(0) - exact).norm() < 0.02 * exact.norm()
