"""Muon against its definition in a plain loop, and against torch's own AdamW."""

import io

import pytest
import torch
from torch import Tensor, nn

from nmt.data.store import PairStore
from nmt.model.interface import matches_any
from nmt.training.muon import Muon
from nmt.training.optimizer import build_optimizer, state_tensors
from nmt.training.schedule import learning_rate
from tests.unit.training.muon.test_orthogonal import by_singular_values
from tests.unit.training.test_checkpointing import same
from tests.unit.training.test_trainer import MODEL, TRAINING, batches_of, store, trainer, training_with, weights

__all__ = ["store"]
MUON = training_with(optimizer="muon", weight_decay=0.1)


@pytest.mark.parametrize("muon_rate", [1.0, 0.4])
def test_layers_get_muon_and_everything_else_gets_adam(muon_rate: float, store: PairStore) -> None:
    config = training_with(MUON, muon_rate=muon_rate)
    ours, plain = trainer(config), trainer(config).model
    named = dict(plain.named_parameters())
    matrices = {
        name
        for name in named
        if name.endswith(("value.weight", "query.weight", "output.weight", "ner.weight", "outer.weight"))
    }
    assert len(matrices) == 4 + 7  # self-attention 2, cross-attention 3, feed-forward 2
    decayed = [weight for name, weight in named.items() if name not in matrices and weight.dim() > 1]
    vectors = [weight for weight in named.values() if weight.dim() == 1]
    means = {name: torch.zeros_like(named[name]) for name in matrices}
    adam = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        betas=(TRAINING.adam_beta1, TRAINING.adam_beta2), eps=TRAINING.adam_eps,
    )  # fmt: skip
    reader = trainer(config)
    for step, batch in enumerate(batches_of(store, MUON, 6), start=1):
        ours.update(batch)
        reader.model.load_state_dict(plain.state_dict())
        reader.gradient.add(batch, step)
        for name, weight in reader.model.named_parameters():
            named[name].grad, weight.grad = weight.grad, None
        rate = learning_rate(step, MUON, MODEL.d_model)
        for group in adam.param_groups:
            group["lr"] = rate
        adam.step()
        for name in matrices:
            muon_step(named[name], means[name], muon_rate * rate)
        for name, weight in plain.state_dict().items():
            torch.testing.assert_close(ours.model.state_dict()[name], weight, rtol=0, atol=1e-4, msg=name)


@torch.no_grad()
def muon_step(weight: nn.Parameter, mean: Tensor, rate: float) -> None:
    """Update a weight by Muon's definition, with the singular value decomposition."""
    assert weight.grad is not None
    mean.mul_(0.95).add_(weight.grad, alpha=0.05)
    direction = by_singular_values(0.05 * weight.grad + 0.95 * mean)
    weight.mul_(1 - 0.1 * rate).sub_(rate * 0.2 * max(weight.shape) ** 0.5 * direction)


@pytest.mark.parametrize("threads", [1, 2])
def test_matrices_that_share_a_core_are_updated_as_alone(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    torch.manual_seed(1)
    start = [torch.randn(shape) for shape in [(16, 16)] * 5 + [(16, 64)] * 2 + [(64, 16)]]
    gradients = [torch.randn_like(each) for each in start]
    updated = []
    for numbers in (1 << 16, 3 * 16 * 16, 1):
        monkeypatch.setattr("nmt.training.muon.NUMBERS_PER_CORE", numbers)
        matrices = [each.clone() for each in start]
        optimizer = Muon(matrices, MUON, torch.float32)
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        for matrix, gradient in zip(matrices, gradients, strict=True):
            matrix.grad = gradient.clone()
        optimizer.step()
        updated.append(matrices)
    for few, alone, begun in zip(updated[0], updated[2], start, strict=True):
        assert not few.equal(begun)
        torch.testing.assert_close(few, alone)
    torch.testing.assert_close(updated[1], updated[2])


def test_training_resumes_exactly(store: PairStore) -> None:
    undisturbed, begun, resumed = trainer(MUON), trainer(MUON), trainer(MUON)
    batches = batches_of(store, MUON, 8)
    for batch in batches:
        undisturbed.update(batch)
    for batch in batches[:5]:
        begun.update(batch)
    file = io.BytesIO()
    torch.save(begun.to_save(), file)
    file.seek(0)
    resumed.update(batches[0])  # a state that the saved one replaces
    resumed.take_statistics()
    resumed.model.load_state_dict(weights(begun))
    resumed.restore(torch.load(file, weights_only=True))
    for batch in batches[5:]:
        resumed.update(batch)
    assert same(weights(resumed), weights(undisturbed))
    assert same(resumed.to_save(), undisturbed.to_save())


def test_a_step_without_a_finite_gradient_changes_nothing(store: PairStore) -> None:
    ours, calm = trainer(MUON), trainer(MUON)
    first, bad, last = batches_of(store, MUON, 3)
    for each in (ours, calm):
        each.update(first)
    before = ours.to_save()["optimizer"]
    hook = next(ours.model.parameters()).register_hook(lambda gradient: gradient * torch.nan)
    ours.update(bad)
    hook.remove()
    assert same(weights(ours), weights(calm))
    assert same(ours.to_save()["optimizer"]["state"], before["state"])
    assert ours.take_statistics().skipped == 1
    ours.update(last)
    assert not same(weights(ours), weights(calm))


def give_gradients(optimizer: torch.optim.Optimizer, value: float) -> None:
    for weight in optimizer.param_groups[0]["params"]:
        weight.grad = torch.full_like(weight, value)


def test_a_gpu_skips_a_step_without_being_waited_for(store: PairStore) -> None:
    (batch,) = batches_of(store, MUON, 1)
    ours, calm = trainer(MUON), trainer(MUON)
    for each in (ours, calm):
        each.update(batch)
    muon, calm_muon = (each.optimizer._parts[0] for each in (ours, calm))  # type: ignore[attr-defined]
    before = weights(ours)
    muon.found_inf = torch.tensor(1.0)
    give_gradients(muon, torch.nan)
    muon.step()
    assert same(weights(ours), before)
    muon.found_inf = torch.tensor(0.0)
    for each in (muon, calm_muon):
        give_gradients(each, 0.5)
        each.step()
    assert same(weights(ours), weights(calm))
    assert not same(weights(ours), before)


def test_the_optimizer_keeps_two_numbers_per_adam_parameter_and_one_per_muon_weight(store: PairStore) -> None:
    for config in (MUON, TRAINING):
        ours = trainer(config)
        expected = sum(tensor.numel() for tensor in state_tensors(ours.optimizer))
        ours.update(batches_of(store, MUON, 1)[0])
        kept = [value for values in ours.optimizer.state.values() for name, value in values.items() if name != "step"]
        assert sum(value.numel() for value in kept) == expected


@pytest.mark.parametrize("names", [["encoder*", "decoder*"], ["vectors.*", "*norm*", "*.bias"]])
def test_one_of_the_two_may_have_nothing_to_train(names: list[str], store: PairStore) -> None:
    ours = trainer(MUON)
    for name, parameter in ours.model.named_parameters():
        parameter.requires_grad_(not matches_any(name, names))
    ours.optimizer = build_optimizer(ours.model, MUON, torch.float64)
    before = weights(ours)
    ours.update(batches_of(store, MUON, 1)[0])
    changed = {name for name, weight in weights(ours).items() if not torch.equal(weight, before[name])}
    assert changed == {name for name, weight in ours.model.named_parameters() if weight.requires_grad}
