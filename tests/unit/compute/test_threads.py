"""Parts of a batch side by side come to what one after the other does, and are left when they should be."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.compute.threads import concurrent_workers, run_in_threads, run_tasks_in_threads
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.loader import DataPosition, steps
from nmt.data.store import PairStore
from nmt.model.transformer import Transformer
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


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_equals_one_after_the_other(store: PairStore, precision: torch.dtype) -> None:
    model = ModelConfig(layers=1, d_model=16, d_ff=32, heads=2, dropout=0.3)
    training = TrainingConfig(batch_tokens=60, warmup_steps=5)
    trainers = []
    for parts in (1, 2):
        torch.manual_seed(3)
        machine = Machine(CPU.device, precision)
        trainers.append(Trainer(Transformer(model, VOCABULARY, VOCABULARY), training, machine, seed=1))
        trainers[-1].concurrency = parts
    stream = steps(
        store, batch_tokens=60, device_tokens=40, seed=1, start=DataPosition(), rank=0, devices=1, parts=2
    )  # fmt: skip
    for _ in range(4):
        work = next(stream)
        assert len(work.micro_batches) >= 4
        for trainer in trainers:
            torch.set_num_threads(trainer.concurrency)  # each part has one
            trainer.update(work)
    one, two = (trainer.model.state_dict() for trainer in trainers)
    for name, value in one.items():
        assert torch.equal(value, two[name]), name
    assert trainers[0].take_statistics() == trainers[1].take_statistics()


@pytest.mark.parametrize(("batch", "device_tokens", "parts"), [(1023, 0, 1), (1024, 0, 2), (25_000, 1000, 1)])
def test_small_batches_stay_whole(batch: int, device_tokens: int, parts: int) -> None:
    config = TrainingConfig(batch_tokens=batch, device_tokens=device_tokens)
    model = Transformer(ModelConfig(layers=1, d_model=16, d_ff=32, heads=2), VOCABULARY, VOCABULARY)
    assert Trainer(model, config, CPU, seed=1).concurrency == parts


@pytest.mark.parametrize(
    ("threads", "shares"), [(1, [1] * 5), (2, [1, 2, 2, 2, 2]), (6, [1, 2, 3, 3, 3]), (8, [1, 2, 2, 4, 4])]
)
def test_threads_are_shared_evenly(threads: int, shares: list[int]) -> None:
    torch.set_num_threads(threads)
    assert [concurrent_workers(most) for most in range(1, 6)] == shares
    assert concurrent_workers(0) == 1


def test_results_come_in_order_from_threads_of_their_own() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def work(part: int) -> tuple[int, int, int]:
        meeting.wait()  # nobody gets past unless all are here at once
        return part, torch.get_num_threads(), threading.get_ident()

    torch.set_num_threads(6)
    found = run_in_threads(work, range(3))
    assert [each[:2] for each in found] == [(0, 2), (1, 2), (2, 2)]
    assert len({each[2] for each in found}) == 3
    assert torch.get_num_threads() == 6


def test_an_error_of_a_part_is_raised() -> None:
    def work(part: int) -> None:
        if part:
            raise MemoryError("not enough")

    with pytest.raises(MemoryError, match="not enough"):
        run_in_threads(work, range(2))


@pytest.mark.parametrize("workers", [1, 2])
def test_each_task_is_done_once_by_whoever_is_free(workers: int) -> None:
    done: list[tuple[int, int]] = []
    rest_is_done = threading.Event()

    def work(task: int) -> None:
        if task == 0 and workers > 1:
            assert rest_is_done.wait(10)  # the other worker does all that there is besides
        done.append((task, threading.get_ident()))
        if len(done) == 9:
            rest_is_done.set()

    run_tasks_in_threads(work, (task for task in range(10)), workers)
    assert sorted(task for task, _ in done) == list(range(10))
    assert len({worker for _, worker in done}) == workers


@pytest.mark.parametrize("workers", [1, 2])
def test_no_task_is_begun_after_an_error(workers: int) -> None:
    begun: list[int] = []
    failed = threading.Event()

    def work(task: int) -> None:
        begun.append(task)
        if task == 1:
            failed.set()
            raise ValueError("not this one")
        if workers > 1:
            assert failed.wait(10)
            time.sleep(0.2)  # longer than an error takes to be known

    with pytest.raises(ValueError, match="not this one"):
        run_tasks_in_threads(work, range(100), workers)
    assert sorted(begun) == [0, 1]


def test_parts_are_left_where_the_caller_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, left = threading.Semaphore(0), []
    join = threading.Thread.join

    def work(part: int) -> None:
        begun.release()
        try:
            for _ in range(3000):
                time.sleep(0.01)
        finally:
            left.append(part)

    def stopped_once(self: threading.Thread, timeout: float | None = None) -> None:
        monkeypatch.setattr(threading.Thread, "join", join)
        for _ in range(2):
            begun.acquire()
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", stopped_once)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_in_threads(work, range(2))
    assert sorted(left) == [0, 1]
    assert time.monotonic() - started < 10
