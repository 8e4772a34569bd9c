"""Signals are remembered, or end an interruptible block immediately."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from nmt.compute.signals import StopError, stop_signals
from nmt.config.training import TrainingConfig
from tests.unit.training.test_memory_check import first_steps, store, trainer


def send_signal(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_is_remembered(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as stop_request:
        assert stop_request.signal is None
        send_signal(number)
        assert stop_request.signal == number
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("processes", [1, 2])
def test_only_one_of_several_processes_ignores_signals_after_an_error(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("nmt.compute.distributed.world_size", lambda: processes)
    with pytest.raises(ZeroDivisionError), stop_signals():
        raise ZeroDivisionError
    ignored = signal.signal(signal.SIGTERM, before) != before
    assert ignored == (processes > 1)


def test_a_signal_ends_an_interruptible_block() -> None:
    started = time.monotonic()
    with stop_signals() as stop_request, pytest.raises(StopError), stop_request.interruptible():  # noqa: PT012
        send_signal()
        time.sleep(30)
    assert time.monotonic() - started < 30
    assert stop_request.signal == signal.SIGTERM


def test_a_second_interrupt_is_raised_immediately() -> None:
    with stop_signals():
        send_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send_signal(signal.SIGINT)


def test_the_update_of_the_weights_is_not_interrupted() -> None:
    config = TrainingConfig(batch_tokens=300, warmup_steps=2)
    stopped, other = trainer(config), trainer(config)
    work = first_steps(config, store())[0]
    with stop_signals() as stop_request:
        stopped.optimizer.register_step_pre_hook(lambda *_: send_signal())
        stopped.update(work, stop_request.interruptible)
        assert stop_request.signal == signal.SIGTERM
    other.update(work, never)
    for name, weight in other.model.state_dict().items():
        assert torch.equal(stopped.model.state_dict()[name], weight), name


@contextmanager
def never() -> Iterator[None]:
    yield
