"""The z-loss against its formula in float64, and training with it."""

import pytest
import torch

from nmt.config.compose import compose
from nmt.data.store import PairStore
from nmt.errors import ConfigError
from nmt.features.z_loss import loss as module
from nmt.features.z_loss.loss import ZLoss, z_loss
from nmt.features.z_loss.section import weight_section
from nmt.runs.section import ShownRun
from nmt.text.special import PAD
from tests.unit.training.test_trainer import TRAINING, batches_of, store, trainer, training_with, weights

__all__ = ["store"]
WEIGHT = 0.5


def test_the_term_is_the_squared_log_of_the_denominators(store: PairStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "rows_per_chunk", lambda *_: 3)
    model = trainer().model.eval()
    batch = batches_of(store, TRAINING, 1)[0].micro_batches[0]
    parameters = [each for each in model.parameters() if each.requires_grad]

    def gradients(total: torch.Tensor) -> list[torch.Tensor]:
        return [torch.zeros(1) if each is None else each for each in torch.autograd.grad(total, parameters)]

    outputs = model.factors(model(batch.source, batch.target))
    found = ZLoss(WEIGHT).watch(batch).loss(outputs)
    logits = model.factors(model(batch.source, batch.target))
    scores = logits.rows[batch.labels != PAD] @ logits.projection.T
    expected = WEIGHT * scores.exp().sum(-1).log().pow(2).sum()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found), gradients(expected))


@pytest.mark.parametrize("parallel", [1, 2])
def test_training_keeps_the_denominators_near_one(store: PairStore, parallel: int) -> None:
    ours = trainer(training_with(z_loss=WEIGHT), parallel=parallel)
    without = trainer(parallel=parallel)
    batches = batches_of(store, TRAINING, 8)
    for batch in batches:
        ours.update(batch)
        without.update(batch)
    first = batches[0].micro_batches[0]
    sizes = [
        float(ZLoss(1).watch(first).loss(each.model.factors(each.model(first.source, first.target))).detach())
        for each in (ours, without)
    ]
    assert sizes[0] < sizes[1]
    assert any(not torch.equal(weight, weights(without)[name]) for name, weight in weights(ours).items())


def test_a_weight_of_zero_adds_nothing() -> None:
    assert z_loss(compose([])) is None
    assert weight_section(ShownRun(compose([]), {})) is None


def test_a_run_s_page_names_the_weight() -> None:
    section = weight_section(ShownRun(compose(["training.z_loss=1e-4"]), {}))
    assert section is not None
    assert "0.0001 times" in section.body


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["training.z_loss=-1"], r"training.z_loss=-1.0 must be at least 0"),
        (["training.z_loss=1e-4", "runtime.compile=true"], r"training.z_loss cannot be used with runtime.compile=true"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compose(words)
