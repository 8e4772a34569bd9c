"""Training with skipped layers: in threads, as one of several processes, and with frozen weights."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from nmt.compute import distributed
from nmt.data.store import PairStore
from nmt.model import layer_drop as skipping
from tests.unit.model.reference import model_with
from tests.unit.training.test_trainer import MODEL, TRAINING, VOCABULARY, batches_of, store, trainer, weights

__all__ = ["store"]
SKIPPING = model_with(MODEL, layers=2, layer_drop=0.6)
CONFIG = replace(TRAINING, device_tokens=20)


@pytest.fixture
def _group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Form a group of this process alone, which trains as one of several."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("parallel", [1, 3])
def test_skipped_layers_depend_on_the_micro_batch_alone(store: PairStore, parallel: int) -> None:
    ours, again = trainer(CONFIG, SKIPPING, parallel), trainer(CONFIG, SKIPPING, parallel)
    for batch in batches_of(store, CONFIG, 3):
        ours.update(batch)
        torch.rand(7)  # the state of the generator before a step does not matter
        again.update(batch)
    for name, weight in weights(ours).items():
        assert torch.equal(weights(again)[name], weight), name


@pytest.mark.usefixtures("_group")
def test_no_process_waits_for_the_gradients_of_skipped_layers(store: PairStore) -> None:
    ours = trainer(CONFIG, model_with(SKIPPING, layer_drop=0.9))
    before = weights(ours)
    for batch in batches_of(store, CONFIG, 6):
        ours.update(batch._replace(words=torch.arange(VOCABULARY)))
    assert ours.take_statistics().skipped == 0
    assert all(weight.isfinite().all() for weight in weights(ours).values())
    assert any(not torch.equal(weight, before[name]) for name, weight in weights(ours).items())


def test_a_step_without_any_layer_changes_only_the_others(store: PairStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipping, "skips_layer", lambda _: True)
    ours = trainer(CONFIG, SKIPPING)
    before = weights(ours)
    ours.update(batches_of(store, CONFIG, 1)[0])
    changed = {name for name, weight in weights(ours).items() if not torch.equal(weight, before[name])}
    assert changed == {"vectors.shared"}
