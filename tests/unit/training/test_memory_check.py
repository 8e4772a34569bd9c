"""The largest batch is tried before training, and leaves no trace."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.batches import Batching, plan_epoch, split_batch
from nmt.data.largest_batches import largest_micro_batches
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch, global_batches
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, in_memory
from nmt.errors import CommonError, UserError
from nmt.model.build import build_model
from nmt.training import build, memory_check
from nmt.training.memory_check import tokens_that_fit
from nmt.training.replicas import Replicas
from nmt.training.trainer import Trainer

WORDS = 40
CPU = Machine(torch.device("cpu"), torch.float32)


def store(count: int = 200) -> PairStore:
    random = np.random.default_rng(3)
    source, target = random.integers(1, 30, count), random.integers(1, 30, count)
    ids = [random.integers(4, WORDS, lengths.sum()) for lengths in (source, target)]
    return in_memory((ids[0], source), (ids[1], target))


def trainer(config: TrainingConfig) -> Trainer:
    torch.manual_seed(1)
    model = build_model(ModelConfig(layers=1, d_model=16, d_ff=32, heads=2), WORDS, WORDS)
    return Trainer(model, config, CPU, seed=1)


def first_steps(config: TrainingConfig, text: PairStore) -> list[GlobalBatch]:
    batching = Batching(config.batch_tokens, seed=1)
    stream = global_batches(text, batching, device_tokens=0, start=DataPosition(), rank=0, devices=1)
    return [next(stream) for _ in range(3)]


def test_the_memory_check_changes_neither_weights_nor_random_state() -> None:
    config, text = TrainingConfig(batch_tokens=300, warmup_steps=2), store()
    tried, untried = trainer(config), trainer(config)
    before = torch.random.get_rng_state()
    tokens_that_fit(tried, text, longest_sentence=31)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in tried.model.parameters())
    for each in (tried, untried):
        for step in first_steps(config, text):
            each.update(step)
    assert tried.take_statistics() == untried.take_statistics()
    for name, weight in untried.model.state_dict().items():
        assert torch.equal(tried.model.state_dict()[name], weight), name


@pytest.mark.parametrize(("devices", "device_tokens"), [(1, 0), (2, 0), (1, 100), (3, 60)])
def test_the_largest_micro_batches_have_the_most_tokens_padded_tokens_and_sentences(
    devices: int, device_tokens: int
) -> None:
    text, budget = store(), 300
    lengths = text.pair_lengths
    plan = plan_epoch(lengths, Batching(budget, seed=1), epoch=0)
    found = largest_micro_batches(text, Batching(budget, seed=1), device_tokens=device_tokens, devices=devices)
    micro_batches = [
        part for index in range(len(plan)) for part in split_batch(plan[index], lengths, devices, device_tokens)
    ]
    tokens = [int((lengths.source[part] + lengths.target[part]).sum()) for part in micro_batches]
    padded = [
        int(np.maximum(lengths.source[part], lengths.target[part]).max(initial=0)) * count
        for part, count in zip(micro_batches, tokens, strict=True)
    ]
    counts = [len(batch.source.tokens) + len(batch.target.tokens) for batch in found]
    longest = [max(batch.source.longest, batch.target.longest) for batch in found]
    assert max(counts) >= max(tokens)
    assert max(length * count for length, count in zip(longest, counts, strict=True)) >= max(padded)
    assert max(len(batch.sentences) for batch in found) == max(len(part) for part in micro_batches)


class SmallMemoryTrainer:
    """A trainer on a device whose memory holds micro-batches of at most `max_tokens` tokens per side."""

    gradient = SimpleNamespace(concurrency=1, seed=1)
    optimizer = SimpleNamespace(param_groups=[])
    replicas: type[Replicas] = Replicas

    def __init__(self, max_tokens: int, config: TrainingConfig) -> None:
        self.max_tokens, self.config = max_tokens, config
        self.machine, self.model = CPU, trainer(config).model

    def shapes(self, device_tokens: int) -> Shapes:
        return Shapes()

    def try_out(self, batch: MicroBatch) -> None:
        if max(len(batch.labels), len(batch.source.tokens)) > self.max_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(
    ("max_tokens", "device_tokens", "fitting"), [(1000, 0, 0), (1000, 200, 200), (160, 0, 150), (80, 200, 50)]
)
def test_micro_batches_are_halved_until_they_fit(max_tokens: int, device_tokens: int, fitting: int) -> None:
    config = TrainingConfig(batch_tokens=300, device_tokens=device_tokens)
    tried = cast(Trainer, SmallMemoryTrainer(max_tokens, config))
    assert tokens_that_fit(tried, store(), longest_sentence=31) == fitting


def test_memory_without_room_for_the_longest_sentence_is_an_error() -> None:
    tried = cast(Trainer, SmallMemoryTrainer(5, TrainingConfig(batch_tokens=300)))
    message = "300 tokens per side do not fit in the memory of cpu in fp32; far fewer do not fit either"
    with pytest.raises(CommonError, match=message):
        tokens_that_fit(tried, store(), longest_sentence=31)


def test_a_batch_estimated_above_the_machines_memory_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise AssertionError("it was tried")

    beyond = trainer(TrainingConfig(batch_tokens=300))
    beyond.try_out = fail  # type: ignore[assignment,method-assign]
    monkeypatch.setattr(memory_check, "memory_of", lambda _: 100_000_000)  # less than the process takes alone
    with pytest.raises(CommonError, match="300 tokens per side do not fit"):
        tokens_that_fit(beyond, store(), longest_sentence=31)


def test_a_model_above_the_machines_memory_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match=r"the model does not fit in the memory of cpu in fp32: lower model\.layers"):
        build.build_trainer(compose(["model.d_ff=1000000000000"]), CPU, (100, 100))
