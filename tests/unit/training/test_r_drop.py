"""R-Drop against autograd and torch's own losses in float64."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.data.store import PairStore
from nmt.text.special import PAD
from nmt.training import r_drop as module
from nmt.training.objective import Objective
from nmt.training.r_drop import r_drop_loss
from tests.unit.training.test_trainer import MODEL, TRAINING, batches_of, store, trainer

__all__ = ["store"]
TOKENS, WORDS, WIDTH = 11, 13, 6


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    first, second, projection = (
        torch.randn(rows, WIDTH, dtype=torch.float64).to(dtype).requires_grad_() for rows in (TOKENS, TOKENS, WORDS)
    )
    labels = torch.randint(4, WORDS, (TOKENS,))
    labels[3], labels[-1] = PAD, PAD
    return first, second, projection, labels


def plain(first: Tensor, second: Tensor, projection: Tensor, labels: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """The paper's loss, halved."""
    logits = [output[labels != PAD] @ projection.T for output in (first, second)]
    labels = labels[labels != PAD]
    smoothed, nll = (
        torch.stack([F.cross_entropy(each, labels, label_smoothing=share, reduction="sum") for each in logits]).mean()
        for share in (0.1, 0.0)
    )
    log_p, log_q = (each.log_softmax(-1) for each in logits)
    both = (log_p, log_q), (log_q, log_p)
    divergences = [F.kl_div(one, other, log_target=True, reduction="sum") for one, other in both]
    return smoothed + weight / 4 * torch.stack(divergences).sum(), nll


@pytest.mark.parametrize("rows", [1, 6, 400])
@pytest.mark.parametrize("weight", [0.0, 5.0])
def test_loss_and_gradients_equal_autograd(weight: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "rows_per_chunk", lambda *_: rows)
    first, second, projection, labels = inputs()
    losses = r_drop_loss(
        first, second, projection, projection, labels, smoothing=0.1, weight=weight, ignore=PAD
    )  # fmt: skip
    smoothed, nll = plain(first, second, projection, labels, weight)
    torch.testing.assert_close(losses.smoothed, smoothed)
    torch.testing.assert_close(losses.nll, nll)
    found = torch.autograd.grad(3 * losses.smoothed, [first, second, projection])
    torch.testing.assert_close(found, torch.autograd.grad(3 * smoothed, [first, second, projection]))


def test_in_bf16_the_gradients_are_near_those_in_float64() -> None:
    first, second, projection, labels = inputs(torch.bfloat16)
    master = projection.detach().float().requires_grad_()
    losses = r_drop_loss(first, second, master, projection, labels, smoothing=0.1, weight=5.0, ignore=PAD)
    exact = [each.detach().double().requires_grad_() for each in (first, second, projection)]
    smoothed, _ = plain(exact[0], exact[1], exact[2], labels, 5.0)
    found = torch.autograd.grad(losses.smoothed, [first, second, master])
    for ours, expected in zip(found, torch.autograd.grad(smoothed, exact), strict=True):
        assert float((ours.double() - expected).norm() / expected.norm()) < 1e-2


def test_the_two_passes_of_a_step_have_different_masks(store: PairStore) -> None:
    batch = batches_of(store, TRAINING, 1)[0].micro_batches[0]
    dropped = replace(MODEL, dropout=0.2)
    alike, differing = (
        Objective(trainer(model=model).model, 0.1, r_drop=5.0)(batch).smoothed for model in (MODEL, dropped)
    )
    usual = Objective(trainer().model, 0.1)(batch).smoothed
    torch.testing.assert_close(alike, usual)
    assert differing > usual
    evaluated = Objective(trainer(model=dropped).model, 0.1, r_drop=5.0).eval()(batch)
    torch.testing.assert_close(evaluated.smoothed, usual)
