"""Tasks in threads: results, errors and interrupts; and training steps in threads."""

import os
import signal
import threading
import time
from collections.abc import Iterator

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


class LongTasks:
    """Tasks of half a minute, but for task 0, which report that they have begun and that they were abandoned."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.abandoned: list[int] = []

    def __call__(self, task: int) -> None:
        try:
            self.begun.release()
            for _ in range(3000 if task else 0):
                time.sleep(0.01)
        finally:
            self.abandoned.append(task)


class InterruptError(BaseException):
    """Raised by a signal in the main thread."""


def test_an_interrupt_abandons_the_tasks(capfd: pytest.CaptureFixture[str]) -> None:
    tasks = LongTasks()
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise InterruptError

    def interrupt_main_thread() -> None:
        for _ in range(2):
            tasks.begun.acquire()
        while not interrupted.wait(0.01):  # a signal that comes just before the main thread waits does not wake it
            os.kill(os.getpid(), signal.SIGUSR1)

    helper = threading.Thread(target=interrupt_main_thread)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        helper.start()
        with pytest.raises(InterruptError):
            run_in_threads(tasks, [1, 2], 2)
    finally:
        helper.join()
        signal.signal(signal.SIGUSR1, before)
    assert sorted(tasks.abandoned) == [1, 2]
    assert capfd.readouterr().err == ""
