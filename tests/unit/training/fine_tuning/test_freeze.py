"""Frozen weights: the others are trained as before, in both precisions, in threads, and by several processes."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.transformer import Transformer
from nmt.training.fine_tuning import freeze, warning_of_new_pieces
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import MODEL, TRAINING, VOCABULARY, batches_of, store

__all__ = ["store"]
WITH_BIAS = replace(MODEL, output_bias=True)
FROZEN = (["encoder"], ["decoder"], ["embeddings"], ["*.weight"], ["*.bias"], ["encoder", "decoder", "vectors.shared"])
PRECISIONS = (torch.float32, torch.bfloat16)


def frozen_trainer(names: list[str], precision: torch.dtype, **training: object) -> Trainer:
    torch.manual_seed(3)
    model = build_model(WITH_BIAS, VOCABULARY, VOCABULARY)
    freeze(model, names)
    config = replace(TRAINING, device_tokens=20, **training)  # type: ignore[arg-type]
    return Trainer(model, config, Machine(torch.device("cpu"), precision), seed=1, parallel=1)


def gradients(trainer: Trainer, store: PairStore) -> dict[str, torch.Tensor | None]:
    (batch,) = batches_of(store, trainer.config, 1)
    with trainer.working_weights.active():
        trainer.gradient.add(batch, 1)
    return {name: parameter.grad for name, parameter in trainer.model.named_parameters()}


@pytest.mark.parametrize(
    ("freeze", "vocabulary", "warns"),
    [
        ("embeddings", "new", True),
        ("'vectors.*'", "extend", True),
        ("embeddings", "old", False),
        ("encoder", "new", False),
    ],
)
def test_new_word_pieces_that_are_never_learned_are_a_warning(freeze: str, vocabulary: str, warns: bool) -> None:
    words = ["training.init_from=old", f"training.init_vocabulary={vocabulary}", f"training.freeze=[{freeze}]"]
    assert ("new word pieces" in warning_of_new_pieces(compose(words).training)) == warns


def test_the_nearest_part_or_parameter_is_suggested() -> None:
    model = Transformer(MODEL, VOCABULARY, VOCABULARY)
    with pytest.raises(UserError, match=r"decodr is no part and no parameter .*: did you mean decoder\?"):
        freeze(model, ["decodr"])
    with pytest.raises(UserError, match=r"foo is no part .*: choose from decoder, embeddings, encoder$"):
        freeze(model, ["foo"])
    with pytest.raises(UserError, match=r"did you mean vectors\.shared\?"):
        freeze(model, ["vectors.sharde"])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("names", FROZEN, ids=",".join)
@pytest.mark.parametrize("parallel", [1, 2])
def test_only_the_others_have_a_gradient_and_it_is_the_same(
    store: PairStore, names: list[str], precision: torch.dtype, parallel: int
) -> None:
    whole, frozen = frozen_trainer([], precision), frozen_trainer(names, precision)
    whole.gradient.concurrency = frozen.gradient.concurrency = parallel
    expected = gradients(whole, store)
    trained = {name for name, parameter in frozen.model.named_parameters() if parameter.requires_grad}
    assert 0 < len(trained) < len(expected)
    for name, found in gradients(frozen, store).items():
        if name in trained:
            torch.testing.assert_close(found, expected[name], msg=name)
        else:
            assert found is None, name


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("names", FROZEN, ids=",".join)
def test_an_update_changes_all_weights_but_the_frozen_ones(
    store: PairStore, names: list[str], precision: torch.dtype
) -> None:
    ours = frozen_trainer(names, precision)
    before = deepcopy(dict(ours.model.named_parameters()))
    (batch,) = batches_of(store, ours.config, 1)
    ours.try_out(batch.micro_batches[0])
    ours.update(batch)
    for name, weight in ours.model.named_parameters():
        assert torch.equal(weight, before[name]) != weight.requires_grad, name


@pytest.fixture
def _group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Form a group of this process alone, which trains as one of several."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_group")
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("names", FROZEN, ids=",".join)
def test_several_processes_train_all_weights_but_the_frozen_ones(
    store: PairStore, names: list[str], sharded: bool
) -> None:
    ours = frozen_trainer(names, torch.float32, shard_optimizer=sharded)
    before = deepcopy(dict(ours.model.named_parameters()))
    words = torch.arange(VOCABULARY)
    for batch in batches_of(store, ours.config, 2):
        ours.update(batch._replace(words=words))
    trained = {name for name, weight in ours.model.named_parameters() if weight.requires_grad}
    for name, weight in ours.model.named_parameters():
        assert torch.equal(weight, before[name]) == (name not in trained), name
    saved = ours.to_save()
    assert len(saved["optimizer"]["state"]) == len(trained)
    ours.restore(saved)
