"""A step against plain torch: its own cross-entropy, its own Adam, whole batches."""

from copy import deepcopy
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
from nmt.data.batches import Batching, PairLengths, plan_epoch
from nmt.data.loader import CPU_SHAPES, DataPosition, GlobalBatch, assemble, global_batches
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, writing
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS, PAD
from nmt.training.schedule import learning_rate
from nmt.training.statistics import held_out_loss
from nmt.training.trainer import Trainer

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


def trainer(training: TrainingConfig = TRAINING, model: ModelConfig = MODEL, parallel: int = 1) -> Trainer:
    torch.manual_seed(3)
    built = build_model(model, VOCABULARY, VOCABULARY).double()
    return Trainer(built, training, CPU, seed=1, parallel=parallel)


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


@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.parametrize("shape", [{}, {"output_bias": True}, {"output_bias": True, "tie_embeddings": False}], ids=str)
def test_updates_equal_a_plain_training_loop(store: PairStore, parallel: int, shape: dict[str, bool]) -> None:
    model = replace(MODEL, **shape)  # type: ignore[arg-type]
    ours = trainer(model=model, parallel=parallel)
    plain = build_model(model, VOCABULARY, VOCABULARY).double()
    plain.load_state_dict(ours.model.state_dict())
    adam = torch.optim.Adam(plain.parameters(), betas=(0.9, 0.98), eps=1e-5)
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
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
    ours = trainer(training_with(optimizer="adam" if is_own else optimizer))
    if is_own:  # which does not know that a step may be skipped
        ours.optimizer = torch.optim.NAdam(ours.model.parameters())
    first, bad, last = batches_of(store, TRAINING, 3)
    ours.update(first)
    before, moments = weights(ours), str(ours.optimizer.state_dict()["state"])
    broken = next(iter(ours.model.parameters())).register_hook(lambda gradient: gradient * torch.nan)
    ours.update(bad)
    broken.remove()
    assert all(torch.equal(value, before[name]) for name, value in weights(ours).items())
    assert str(ours.optimizer.state_dict()["state"]) == moments
    assert ours.take_statistics().skipped == 1
    ours.update(last)
    assert not all(torch.equal(value, before[name]) for name, value in weights(ours).items())
    assert ours.take_statistics().skipped == 0


def test_a_skipped_step_does_not_enter_the_mean_losses(store: PairStore) -> None:
    ours, plain = trainer(), trainer()
    first, bad, last = batches_of(store, TRAINING, 3)
    for each in (ours, plain):
        each.update(first)
    broken = next(iter(ours.model.parameters())).register_hook(lambda gradient: gradient * torch.nan)
    with torch.no_grad():  # the weights it meets are fine, its loss is not
        whole = ours.model.projection.clone()
        ours.model.projection.fill_(torch.nan)
    ours.update(bad)
    with torch.no_grad():
        ours.model.projection.copy_(whole)
    broken.remove()
    ours.step -= 1  # so that both use the learning rate of the same step
    plain.data_position = bad.after
    for each in (ours, plain):
        each.update(last)
    found, expected = ours.take_statistics(), plain.take_statistics()
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


def test_training_resumed_from_a_saved_state_is_exact(store: PairStore) -> None:
    dropout = replace(MODEL, dropout=0.3)
    ours = trainer(model=dropout)
    items = batches_of(store, TRAINING, 12)
    for item in items[:7]:
        ours.update(item)
    state, kept = deepcopy(ours.to_save()), weights(ours)
    for item in items[7:]:
        ours.update(item)

    torch.manual_seed(999)  # whatever has happened to the random state in between
    again = trainer(model=dropout)
    again.model.load_state_dict(kept)
    again.restore(state)
    for item in batches_of(store, TRAINING, 5, start=again.data_position):
        again.update(item)
    assert all(torch.equal(value, weights(again)[name]) for name, value in weights(ours).items())
    assert again.take_statistics() == ours.take_statistics()
    assert again.step == 12


def test_dropout_is_on_in_the_step_after_a_validation(store: PairStore) -> None:
    ours = trainer()
    ours.model.eval()
    ours.update(batches_of(store, TRAINING, 1)[0])
    assert ours.model.training


def test_dropout_masks_differ_between_steps_and_micro_batches(store: PairStore) -> None:
    ours = trainer(replace(TRAINING, learning_rate=1e-30), replace(MODEL, dropout=0.5))
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
    assert any((batch.labels == PAD).any() for item in with_filling for batch in item.micro_batches)
    for bare_item, filled_item in zip(without, with_filling, strict=True):
        bare.update(bare_item)
        filled.update(filled_item)
        assert filled_item.tokens == bare_item.tokens  # tokens per second never count filler
    assert filled.take_statistics() == pytest.approx(bare.take_statistics())
    for name, value in weights(bare).items():
        torch.testing.assert_close(weights(filled)[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shapes", [Shapes(), Shapes(full_tokens=64, token_step=16, buckets=True)], ids=str)
def test_an_empty_micro_batch_does_not_change_the_update(store: PairStore, shapes: Shapes) -> None:
    with_empty, without = trainer(), trainer()
    item = batches_of(store, TRAINING, 1)[0]
    empty = assemble(store, np.array([], dtype=np.int64), shapes=shapes)
    assert set(empty.labels.tolist()) == {PAD}
    without.update(item)
    with_empty.update(item._replace(micro_batches=[*item.micro_batches, empty]))
    for name, value in weights(without).items():
        torch.testing.assert_close(weights(with_empty)[name], value, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_training_in_bf16_reaches_nearly_the_same_loss(store: PairStore, dropout: float) -> None:
    losses = []
    for precision in (torch.float32, torch.bfloat16):
        torch.manual_seed(3)
        model = build_model(replace(MODEL, dropout=dropout), VOCABULARY, VOCABULARY)
        ours = Trainer(model, replace(TRAINING, learning_rate=3e-3), Machine(torch.device("cpu"), precision), seed=1)
        for item in batches_of(store, TRAINING, 60):
            ours.update(item)
        losses.append(ours.take_statistics().loss)
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def bf16_trainer(model: ModelConfig, training: TrainingConfig = TRAINING) -> Trainer:
    torch.manual_seed(3)
    machine = Machine(torch.device("cpu"), torch.bfloat16)
    return Trainer(build_model(model, VOCABULARY, VOCABULARY), training, machine, seed=1)


def rounded_matrices(trainer: Trainer) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the copies that the next step would use, with the rounded weights that they must equal."""
    with trainer.working_weights.active():
        return [
            (copy, dict(module.named_parameters())[name].detach().bfloat16())
            for module in trainer.model.modules()
            for name, copy in (getattr(module, "copies", None) or {}).items()
        ]


def test_bf16_weights_are_the_rounded_weights_after_steps_loading_and_restoring(store: PairStore) -> None:
    ours = bf16_trainer(MODEL)
    state, kept = deepcopy(ours.to_save()), weights(ours)
    seen = []
    for item in batches_of(store, TRAINING, 3):
        ours.update(item)
        pairs = rounded_matrices(ours)
        assert all(torch.equal(copy, rounded) for copy, rounded in pairs)
        seen.append(float(pairs[0][0].double().sum()))
    ours.model.load_state_dict(kept)  # as a run does that goes back to a checkpoint
    ours.restore(state)
    pairs = rounded_matrices(ours)
    assert all(torch.equal(copy, rounded) for copy, rounded in pairs)
    assert len({*seen, float(pairs[0][0].double().sum())}) == 4


def test_each_micro_batch_has_its_own_dropout_seed_and_repeats_it(store: PairStore) -> None:
    """The seed is that of the masks on a GPU; it depends on nothing but the position in training."""
    in_parts = replace(TRAINING, device_tokens=20)
    runs = []
    for _ in range(2):
        ours, seeds = trainer(in_parts), list[int]()

        def note(*_: object, seed: torch.Tensor = ours.gradient.dropout_seed, seeds: list[int] = seeds) -> None:
            seeds.append(int(seed))

        ours.replicas.objective.register_forward_pre_hook(note)
        for item in batches_of(store, in_parts, 3):
            ours.update(item)
        runs.append(seeds)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0]) > 3
