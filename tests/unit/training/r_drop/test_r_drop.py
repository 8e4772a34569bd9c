"""R-Drop against autograd and torch's own losses in float64, and a step of training with it."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.config.compose import compose
from nmt.data.store import PairStore
from nmt.errors import ConfigError
from nmt.text.special import PAD
from nmt.training import r_drop as loss
from nmt.training.loss import smoothed_cross_entropy
from nmt.training.objective import Objective
from nmt.training.r_drop import RDrop, r_drop_loss
from tests.unit.training.test_trainer import MODEL, TRAINING, batches_of, store, trainer, training_with, weights

__all__ = ["store"]
TOKENS, WORDS, WIDTH = 11, 13, 6
DROPPED = replace(MODEL, dropout=0.2)


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
    monkeypatch.setattr(loss, "rows_per_chunk", lambda *_: rows)
    first, second, projection, labels = inputs()
    losses = r_drop_loss(first, second, projection, projection, labels, RDrop(0.1, weight, PAD))
    smoothed, nll = plain(first, second, projection, labels, weight)
    torch.testing.assert_close(losses.smoothed, smoothed)
    torch.testing.assert_close(losses.nll, nll)
    found = torch.autograd.grad(3 * losses.smoothed, [first, second, projection])
    torch.testing.assert_close(found, torch.autograd.grad(3 * smoothed, [first, second, projection]))


def test_in_bf16_the_gradients_are_near_those_in_float64() -> None:
    first, second, projection, labels = inputs(torch.bfloat16)
    master = projection.detach().float().requires_grad_()
    losses = r_drop_loss(first, second, master, projection, labels, RDrop(0.1, 5.0, PAD))
    exact = [each.detach().double().requires_grad_() for each in (first, second, projection)]
    smoothed, _ = plain(exact[0], exact[1], exact[2], labels, 5.0)
    assert losses.smoothed.item() == pytest.approx(smoothed.item(), rel=1e-2)
    found = torch.autograd.grad(losses.smoothed, [first, second, master])
    for ours, expected in zip(found, torch.autograd.grad(smoothed, exact), strict=True):
        assert float((ours.double() - expected).norm() / expected.norm()) < 1e-2


def test_equal_passes_have_the_usual_loss() -> None:
    first, _, projection, labels = inputs()
    double = r_drop_loss(first, first, projection, projection, labels, RDrop(0.1, 5.0, PAD))
    once = smoothed_cross_entropy(first, projection, labels, smoothing=0.1, ignore=PAD)
    torch.testing.assert_close(double, once)
    found, expected = (torch.autograd.grad(each.smoothed, [first, projection]) for each in (double, once))
    torch.testing.assert_close(found, expected)


def test_the_two_passes_of_a_step_have_different_masks(store: PairStore) -> None:
    batch = batches_of(store, TRAINING, 1)[0].micro_batches[0]
    alike, differing = (
        Objective(trainer(model=model).model, 0.1, r_drop=5.0)(batch).smoothed for model in (MODEL, DROPPED)
    )
    usual = Objective(trainer().model, 0.1)(batch).smoothed
    torch.testing.assert_close(alike, usual)
    assert differing > usual
    evaluated = Objective(trainer(model=DROPPED).model, 0.1, r_drop=5.0).eval()(batch)
    torch.testing.assert_close(evaluated.smoothed, usual)


@pytest.mark.parametrize("parallel", [1, 2])
def test_training_learns_and_repeats_itself(store: PairStore, parallel: int) -> None:
    config = training_with(r_drop=2.0, device_tokens=30)
    ours, again = (trainer(config, DROPPED, parallel) for _ in range(2))
    for batch in batches_of(store, config, 3):
        ours.update(batch)
        again.update(batch)
    assert ours.take_statistics() == again.take_statistics()
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(ours).items())


def test_a_model_without_dropout_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training.r_drop=5.0 needs dropout: set model.dropout above 0"):
        compose(["training.r_drop=5", "model.dropout=0"])
