"""A step against plain torch: its own cross-entropy, its own Adam, whole batches."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.batches import Batching, plan_epoch
from nmt.data.loader import CPU_SHAPES, DataPosition, GlobalBatch, assemble, global_batches
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, writing
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.text.special import BOS, EOS, PAD
from nmt.training.schedule import learning_rate
from nmt.training.state import TrainingState
from nmt.training.trainer import Trainer
from nmt.training.validation import held_out_loss

MODEL = ModelConfig(layers=1, d_model=16, d_ff=32, heads=2, dropout=0.0)
TRAINING = TrainingConfig(batch_tokens=60, warmup_steps=5, steps=100, adam_eps=1e-5)  # rounding must not become a step
CPU = Machine(torch.device("cpu"), torch.float32)
VOCABULARY = 20

START = DataPosition()


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    random = np.random.default_rng(1)
    with writing(tmp_path, "train", ("en", "de"), VOCABULARY) as writer:
        for _ in range(40):
            source, target = (random.integers(4, VOCABULARY, random.integers(1, 12)) for _ in range(2))
            writer.append(
                source.astype(np.uint16), np.array([len(source)], np.int32),
                target.astype(np.uint16), np.array([len(target)], np.int32),
            )  # fmt: skip
    return PairStore.open(tmp_path, "train")


def training_with(config: TrainingConfig = TRAINING, **settings: Any) -> TrainingConfig:
    """Return settings of training with others."""
    return replace(config, **settings)


def trainer(
    training: TrainingConfig = TRAINING,
    model: ModelConfig = MODEL,
    parallel: int = 1,
    precision: torch.dtype = torch.float64,
) -> Trainer:
    """Return a trainer of a model whose weights are in float64, or which computes in another precision."""
    torch.manual_seed(3)
    built = build_model(model, VOCABULARY, VOCABULARY)
    if precision == torch.float64:
        return Trainer(built.double(), training, CPU, seed=1, parallel=parallel)
    return Trainer(built, training, Machine(CPU.device, precision), seed=1, parallel=parallel)


def batches_of(
    store: PairStore,
    training: TrainingConfig,
    count: int,
    start: DataPosition = START,
    shapes: Shapes = CPU_SHAPES,
) -> list[GlobalBatch]:
    stream = global_batches(
        store,
        Batching(training.batch_tokens, seed=1),
        device_tokens=training.device_tokens,
        start=start,
        rank=0,
        devices=1,
        shapes=shapes,
    )
    return [next(stream) for _ in range(count)]


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


@contextmanager
def without_finite_gradient(trainer: Trainer) -> Iterator[None]:
    """Make the gradients NaN in this block, and the losses, too."""
    hook = next(iter(trainer.model.parameters())).register_hook(lambda gradient: gradient * torch.nan)
    spoil = trainer.replicas.objective.register_forward_hook(
        lambda _, __, losses: losses._replace(nll=losses.nll * torch.nan)
    )
    yield
    hook.remove()
    spoil.remove()


@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.parametrize("shape", [{}, {"output_bias": True}, {"output_bias": True, "tie_embeddings": False}], ids=str)
def test_updates_equal_a_plain_training_loop(store: PairStore, parallel: int, shape: dict[str, bool]) -> None:
    model = replace(MODEL, **shape)  # type: ignore[arg-type]
    ours = trainer(model=model, parallel=parallel)
    plain = build_model(model, VOCABULARY, VOCABULARY).double()
    plain.load_state_dict(ours.model.state_dict())
    adam = torch.optim.Adam(plain.parameters(), betas=(0.9, 0.98), eps=1e-5)
    lengths = store.pair_lengths
    plan = plan_epoch(lengths, Batching(TRAINING.batch_tokens, seed=1), epoch=0)
    for step, item in enumerate(batches_of(store, TRAINING, 6), start=1):
        ours.update(item)
        sentences = plan[step - 1].tolist()
        targets = [store.target(i).tolist() for i in sentences]
        source = Packed.from_sentences([[*store.source(i).tolist(), EOS] for i in sentences])
        target = Packed.from_sentences([[BOS, *target] for target in targets])
        labels = torch.tensor([token for target in targets for token in [*target, EOS]])
        adam.param_groups[0]["lr"] = learning_rate(step, TRAINING, MODEL.d_model)
        adam.zero_grad()
        F.cross_entropy(plain.logits(plain(source, target)), labels, label_smoothing=0.1).backward()
        adam.step()
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(ours.model.state_dict()[name], value, rtol=1e-9, atol=1e-9, msg=name)


def test_gradient_accumulation_does_not_change_the_update(store: PairStore) -> None:
    whole, parts = trainer(), trainer()
    in_parts = replace(TRAINING, device_tokens=20)
    for once, often in zip(batches_of(store, TRAINING, 5), batches_of(store, in_parts, 5), strict=True):
        assert len(once.micro_batches) == 1 < len(often.micro_batches)
        whole.update(once)
        parts.update(often)
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(parts)[name], value, rtol=1e-10, atol=1e-10)
    assert whole.take_statistics().loss == pytest.approx(parts.take_statistics().loss, rel=1e-12)


@pytest.mark.parametrize("optimizer", ["adam", "muon", "a user's own"])
def test_a_step_without_a_finite_gradient_changes_nothing_and_is_counted(store: PairStore, optimizer: str) -> None:
    is_own = optimizer == "a user's own"
    ours, calm = (trainer(training_with(optimizer="adam" if is_own else optimizer)) for _ in range(2))
    if is_own:  # which does not know that a step may be skipped
        ours.optimizer = torch.optim.NAdam(ours.model.parameters())
    first, bad, last = batches_of(store, TRAINING, 3)
    for each in (ours, calm):
        each.update(first)
    before, moments = weights(ours), str(ours.optimizer.state_dict()["state"])
    with without_finite_gradient(ours):
        ours.update(bad)
    assert all(torch.equal(value, before[name]) for name, value in weights(ours).items())
    assert str(ours.optimizer.state_dict()["state"]) == moments
    ours.step -= 1  # so that both use the learning rate of the same step
    calm.data_position = bad.after
    for each in (ours, calm):
        each.update(last)
    assert not all(torch.equal(value, before[name]) for name, value in weights(ours).items())
    found, expected = ours.take_statistics(), calm.take_statistics()
    assert found.skipped == 1
    if not is_own:  # the loss of the bad step does not enter the mean
        assert found == expected._replace(skipped=1)
        assert found.perplexity == pytest.approx(np.exp(found.nll))


def test_clipping_limits_the_norm_of_the_gradient(store: PairStore) -> None:
    free, clipped = trainer(), trainer(replace(TRAINING, clip_norm=1e-3))
    norms: list[float] = []

    def norm_of(trainer: Trainer) -> None:
        gradients = [p.grad for p in trainer.model.parameters() if p.grad is not None]
        norms.append(float(torch.cat([gradient.flatten() for gradient in gradients]).norm()))

    for each in (free, clipped):
        each.optimizer.register_step_pre_hook(lambda *_, each=each: norm_of(each))
        each.update(batches_of(store, TRAINING, 1)[0])
    assert norms[0] > 1e-2
    assert norms[1] == pytest.approx(1e-3, rel=1e-3)
    assert float(clipped.gradient_norm) == pytest.approx(norms[0])


@pytest.mark.parametrize(
    "settings",
    [{}, {"optimizer": "muon", "weight_decay": 0.1}, {"device_tokens": 30}],
    ids=str,
)
@pytest.mark.parametrize("precision", [torch.float64, torch.float16])
def test_training_resumed_from_a_checkpoint_is_exact(
    store: PairStore, settings: dict[str, Any], precision: torch.dtype
) -> None:
    config, dropout = training_with(**settings), replace(MODEL, dropout=0.3)
    state, resumed = (TrainingState(trainer(config, dropout, precision=precision)) for _ in range(2))
    batches = batches_of(store, config, 9)
    for batch in batches[:5]:
        state.trainer.update(batch)
    state.best, state.stale, state.validation_due = 2.5, 4, True
    file = io.BytesIO()
    torch.save((state.to_save(), weights(state.trainer)), file)
    for batch in batches[5:]:
        state.trainer.update(batch)
    torch.manual_seed(999)  # whatever has happened to the random state in between
    resumed.trainer.update(batches[0])  # a state that the saved one replaces
    resumed.trainer.take_statistics()
    file.seek(0)
    saved, kept = torch.load(file, weights_only=True)
    resumed.restore(Checkpoint(meta=CheckpointMeta(step=5), weights=kept, trainer=saved))
    assert (resumed.best, resumed.stale, resumed.validation_due) == (2.5, 4, True)
    for batch in batches_of(store, config, 4, start=resumed.trainer.data_position):
        resumed.trainer.update(batch)
    found, expected = weights(resumed.trainer), weights(state.trainer)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert resumed.trainer.take_statistics() == state.trainer.take_statistics()
    assert resumed.trainer.step == 9


@pytest.mark.parametrize("parallel", [1, 2])
def test_the_trial_of_a_batch_computes_as_much_as_a_step_and_changes_nothing(store: PairStore, parallel: int) -> None:
    ours, batch = trainer(parallel=parallel), batches_of(store, TRAINING, 1)[0].micro_batches[0]
    before, computed = weights(ours), list[int]()
    next(iter(ours.model.parameters())).register_hook(lambda _: computed.append(1))
    ours.try_out(batch)
    assert len(computed) == parallel
    assert all(torch.equal(value, before[name]) for name, value in weights(ours).items())
    assert all(each.grad is None for each in ours.model.parameters())


def test_dropout_masks_differ_between_steps_and_micro_batches(store: PairStore) -> None:
    ours = trainer(replace(TRAINING, learning_rate=1e-30), replace(MODEL, dropout=0.5))
    ours.model.eval()  # as after a validation
    item = batches_of(store, TRAINING, 1)[0]
    losses = []
    for _ in range(2):
        ours.update(item)
        losses.append(ours.take_statistics().loss)
    assert losses[0] != losses[1]
    ours.update(item._replace(micro_batches=item.micro_batches * 2, target_tokens=2 * item.target_tokens))
    assert ours.take_statistics().loss not in losses


def test_the_held_out_loss_equals_torchs_mean_over_all_tokens(store: PairStore) -> None:
    ours = trainer(model=replace(MODEL, dropout=0.5))
    batches = [assemble(store, np.arange(first, first + 10)) for first in range(0, 40, 10)]
    means = held_out_loss(ours.working_weights, batches, TRAINING, CPU.device)
    ours.model.eval()
    whole = assemble(store, np.arange(40))
    text = whole.labels != PAD
    scores, labels = ours.model.logits(ours.model(whole.source, whole.target))[text], whole.labels[text]
    assert means.loss == pytest.approx(float(F.cross_entropy(scores, labels, label_smoothing=0.1).detach()))
    assert means.nll == pytest.approx(float(F.cross_entropy(scores, labels).detach()))
    assert means.perplexity == pytest.approx(float(F.cross_entropy(scores, labels).detach().exp()))


@pytest.mark.parametrize(
    "shapes", [Shapes(token_step=4), Shapes(), Shapes(full_tokens=64, token_step=16, buckets=True)], ids=str
)
def test_filler_does_not_change_the_update(store: PairStore, shapes: Shapes) -> None:
    filled, bare = trainer(), trainer()
    without = batches_of(store, TRAINING, 3, shapes=Shapes(token_step=1))
    with_filling = batches_of(store, TRAINING, 3, shapes=shapes)
    empty = assemble(store, np.array([], dtype=np.int64), shapes=shapes)
    assert any((batch.labels == PAD).any() for item in with_filling for batch in item.micro_batches)
    for bare_item, filled_item in zip(without, with_filling, strict=True):
        bare.update(bare_item)
        filled.update(filled_item._replace(micro_batches=[*filled_item.micro_batches, empty]))
        assert filled_item.tokens == bare_item.tokens  # tokens per second never count filler
    assert filled.take_statistics() == pytest.approx(bare.take_statistics())
    for name, value in weights(bare).items():
        torch.testing.assert_close(weights(filled)[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parallel", [1, 2])
def test_dropout_of_a_micro_batch_depends_only_on_its_place(store: PairStore, parallel: int) -> None:
    config, model = training_with(device_tokens=20), replace(MODEL, dropout=0.3)
    batches, found = batches_of(store, config, 2), []
    for draws in (0, 3):
        trained = trainer(config, model, parallel)
        torch.rand(draws)  # whatever was drawn before
        for batch in batches:
            assert len(batch.micro_batches) > 2
            trained.update(batch)
        found.append(weights(trained))
    assert all(torch.equal(weight, found[1][name]) for name, weight in found[0].items())
