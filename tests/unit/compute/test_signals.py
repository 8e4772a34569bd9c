"""Being asked to stop: noted, or heeded at once where that loses nothing."""

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from nmt.compute.signals import StopError, StopRequest, stop_signals
from nmt.config.schema import TrainingConfig
from tests.unit.training.test_memory_check import first_steps, store, trainer


def ask(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_is_noted(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as asked:
        assert asked.signal is None
        ask(number)
        assert asked.signal == number
    assert signal.getsignal(number) == before


def test_a_block_that_can_be_made_again_is_left_at_once() -> None:
    started = time.monotonic()
    with stop_signals() as asked, pytest.raises(StopError), asked.interruptible():  # noqa: PT012
        ask()
        time.sleep(30)
    assert time.monotonic() - started < 10
    assert asked.signal == signal.SIGTERM


def test_an_alarm_leaves_a_block_that_can_be_made_again() -> None:
    before, ended = signal.getsignal(signal.SIGALRM), False
    with stop_signals() as asked, pytest.raises(StopError), asked.late_after(1e-3), asked.interruptible():  # noqa: PT012
        time.sleep(30)
        ended = True
    assert asked.late
    assert not ended
    assert asked.signal is None
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize("seconds", [60.0, math.inf])
def test_an_alarm_is_taken_back(seconds: float) -> None:
    with stop_signals() as asked, asked.late_after(seconds), asked.interruptible():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert not asked.late


def test_a_block_whose_time_is_up_does_not_begin() -> None:
    with stop_signals() as asked:
        with asked.late_after(-1.0):
            time.sleep(0.01)
        with pytest.raises(StopError), asked.interruptible():
            raise AssertionError("it has begun")


def test_one_that_is_asked_for_before_does_not_begin() -> None:
    with stop_signals() as asked:
        ask()
        with pytest.raises(StopError), asked.interruptible():
            raise AssertionError("it has begun")


def test_leaving_is_not_disturbed() -> None:
    cleared = False
    with stop_signals() as asked, pytest.raises(StopError), asked.interruptible():  # noqa: PT012
        try:
            ask()
        finally:
            ask(signal.SIGUSR1)
            cleared = True
    assert cleared


def test_the_second_interrupt_waits_for_nothing() -> None:
    with stop_signals():
        ask(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            ask(signal.SIGINT)


@pytest.mark.parametrize("moment", ["forward", "backward"])
def test_a_step_that_is_left_half_done_leaves_no_trace(moment: str) -> None:
    config = TrainingConfig(batch_tokens=300, warmup_steps=2)
    stopped, other = trainer(config), trainer(config)
    first, second, _ = first_steps(config, store())
    second = second._replace(micro_batches=second.micro_batches * 4, target_tokens=second.target_tokens * 4)
    for each in (stopped, other):
        each.update(first)
    asked = StopRequest()
    calls = 0

    def signalled(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            asked.note(signal.SIGTERM, None)

    if moment == "forward":
        hook = stopped.model.encoder_norm.register_forward_hook(signalled)
    else:
        hook = next(stopped.model.parameters()).register_hook(signalled)
    with pytest.raises(StopError):
        stopped.update(second, asked.interruptible)
    hook.remove()
    assert calls == 3
    assert repr(stopped.to_save()) == repr(other.to_save())
    for name, weight in other.model.state_dict().items():
        assert torch.equal(stopped.model.state_dict()[name], weight), name


def test_the_weights_are_never_left_half_updated() -> None:
    config = TrainingConfig(batch_tokens=300, warmup_steps=2)
    stopped, other = trainer(config), trainer(config)
    work = first_steps(config, store())[0]
    with stop_signals() as asked:
        stopped.optimizer.register_step_pre_hook(lambda *_: ask())
        stopped.update(work, asked.interruptible)
        assert asked.signal == signal.SIGTERM
    other.update(work, never)
    for name, weight in other.model.state_dict().items():
        assert torch.equal(stopped.model.state_dict()[name], weight), name


@contextmanager
def never() -> Iterator[None]:
    yield
