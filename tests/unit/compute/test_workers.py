"""Tasks in threads: results, errors and interrupts; and training steps in threads."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.compute.workers import in_parallel, run_in_threads
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.batches import Batching
from nmt.data.loader import DataPosition, global_batches
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import VOCABULARY, store

__all__ = ["store"]
CPU = Machine(torch.device("cpu"), torch.float32)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("precision", "positions"), [(torch.float32, "relative"), (torch.bfloat16, "sinusoidal")])
def test_training_in_threads_equals_training_without(store: PairStore, precision: torch.dtype, positions: str) -> None:
    model = ModelConfig(layers=1, d_model=16, d_ff=32, heads=2, dropout=0.3, positions=positions)
    training = TrainingConfig(batch_tokens=60, warmup_steps=5)
    trainers = []
    for parts in (1, 2):
        torch.manual_seed(3)
        machine = Machine(CPU.device, precision)
        trainers.append(Trainer(build_model(model, VOCABULARY, VOCABULARY), training, machine, seed=1))
        trainers[-1].gradient.concurrency = parts
    stream = global_batches(
        store, Batching(60, seed=1), device_tokens=40, start=DataPosition(), rank=0, devices=1, threads=2
    )
    for _ in range(4):
        work = next(stream)
        assert len(work.micro_batches) >= 4
        for trainer in trainers:
            torch.set_num_threads(trainer.gradient.concurrency)  # one per micro-batch
            trainer.update(work)
    one, two = (trainer.model.state_dict() for trainer in trainers)
    for name, value in one.items():
        assert torch.equal(value, two[name]), name
    assert trainers[0].take_statistics() == trainers[1].take_statistics()


def square(number: int) -> int:
    if number < 0:
        raise UserError(f"{number} is negative")
    return number * number


@pytest.mark.parametrize("workers", [1, 2])
def test_each_task_comes_once_with_its_result_or_error(workers: int) -> None:
    assert sorted(in_parallel(square, range(20), workers)) == [(number, number * number) for number in range(20)]
    assert list(in_parallel(square, [], workers)) == []
    with pytest.raises(UserError, match="-3 is negative"):
        list(in_parallel(square, [1, 2, -3, 4], workers))


def test_results_come_in_order_from_simultaneous_calls() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def meet(argument: int) -> tuple[int, int]:
        meeting.wait()  # passes only once all three calls are here
        return argument, torch.get_num_threads()

    torch.set_num_threads(6)
    assert run_in_threads(meet, range(3), 3) == [(0, 2), (1, 2), (2, 2)]
    assert torch.get_num_threads() == 6


def test_tasks_that_have_not_begun_are_left_out_when_the_results_are_no_longer_wanted() -> None:
    begun = list[int]()

    def work(task: int) -> None:
        begun.append(task)
        time.sleep(0.05)

    with closing(in_parallel(work, range(20), 2)) as finished:
        next(finished)
    assert len(begun) < 20
