"""Slow processes, and what NVML tells, without several processes or a GPU."""

import ctypes
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nmt.cli import main
from nmt.data.loader import MicroBatch
from nmt.errors import CommonError
from nmt.features.watching.nvml import Gpu, Reading, find_gpu
from nmt.features.watching.settings import WatchConfig
from nmt.features.watching.speed import MIN_PASSES, PassTimes, slow_ranks
from nmt.features.watching.watcher import Look, Watcher, _slow_warning
from nmt.model.packed import Packed


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([1.0, 1.05, 0.95, 1.2], {3: 20.0}),
        ([1.0, 1.3], {1: 30.0}),
        ([2.0, 1.0, 1.0, 2.0, 1.0], {0: 100.0, 3: 100.0}),
        ([1.0, 1.09, 1.0], {}),
        ([0.0, 1.5, 1.0, 1.0], {1: 50.0}),
        ([0.0, 1.0], {}),
        ([1.0], {}),
    ],
)
def test_ranks_that_are_slower_than_the_usual_one_are_named(seconds: list[float], expected: dict[int, float]) -> None:
    assert slow_ranks(seconds, 10.0) == pytest.approx(expected)


class Sleeper(nn.Module):
    """Takes a given time for each batch."""

    def forward(self, batch: MicroBatch) -> MicroBatch:
        return batch


def test_forward_passes_of_training_are_measured_per_token(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.5
        return now[0]

    monkeypatch.setattr(time, "perf_counter", clock)
    module = Sleeper()
    times = PassTimes(module, torch.device("cpu"))
    stream = Packed.from_lengths(torch.arange(4, 10), torch.tensor([4, 2]))
    batch = MicroBatch(stream, stream, stream.tokens, np.arange(2))
    for _ in range(MIN_PASSES):
        module(batch)
    module.eval()(batch)
    assert times.take() == pytest.approx(0.5 / 12)
    module.train()(batch)
    assert times.take() == 0.0  # too few to say something


def test_replays_are_measured_instead_of_forward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    module, clock = Sleeper(), iter(range(1000))
    monkeypatch.setattr("nmt.features.watching.speed.time.perf_counter", lambda: 0.5 * next(clock))
    times = PassTimes(module, torch.device("cpu"), replays=True)
    stream = Packed.from_lengths(torch.arange(4, 10), torch.tensor([4, 2]))
    batch = MicroBatch(stream, stream, stream.tokens, np.arange(2))
    for _ in range(MIN_PASSES):
        module(batch)
        with times.replay(batch):
            pass
    assert times.take() == pytest.approx(0.5 / 12)


class Library:
    """NVML with one GPU."""

    def __init__(self, **codes: int) -> None:
        self.codes = codes
        self.address = b""

    def nvmlInit_v2(self) -> int:
        return self.codes.get("init", 0)

    def nvmlDeviceGetHandleByPciBusId_v2(self, address: bytes, handle: Any) -> int:
        self.address, handle._obj.value = address, 7
        return self.codes.get("find", 0)

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int, value: Any) -> int:
        assert (handle.value, kind) == (7, 0)
        value._obj.value = 1980
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int, value: Any) -> int:
        assert sensor == 0
        value._obj.value = 61
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, value: Any) -> int:
        value._obj.value = 651_250
        return 0

    def nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: int, since: int, value: Any) -> int:
        assert isinstance(value._obj, ctypes.c_ulonglong)
        value._obj.value = 1 << 40
        return self.codes.get("errors", 0)


def test_nvml_tells_clock_temperature_power_and_memory_errors() -> None:
    assert Gpu(Library(), "a").read() == Reading(1980, 61, 651.25, 1 << 40)
    assert Gpu(Library(errors=3), "a").read() == Reading(1980, 61, 651.25, -1)  # a GPU without ECC


@pytest.mark.parametrize("broken", ["init", "find"])
def test_a_gpu_that_nvml_does_not_know_is_left_out(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(**{broken: 9})
    found = SimpleNamespace(pci_domain_id=0, pci_bus_id=0x3B, pci_device_id=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: found)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert find_gpu(torch.device("cuda", 0)) is None
    library.codes.clear()
    assert find_gpu(torch.device("cuda", 0)) is not None
    assert library.address == b"00000000:3b:00.0"


def test_devices_without_nvml_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_gpu(torch.device("cpu")) is None

    def missing(_: str) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    found = SimpleNamespace(pci_domain_id=0, pci_bus_id=0, pci_device_id=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: found)
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert find_gpu(torch.device("cuda", 0)) is None


def test_the_warning_has_the_state_of_the_gpu() -> None:
    look = Look("node7", 1.0, {}, Reading(1005, 88, 320, 2))
    assert _slow_warning(3, 24.4, look) == (
        "rank 3 on node7 is slow: its passes take 24% longer per token than usual; its GPU has 1005 MHz, 88 "
        "degrees Celsius and 320 W, and its memory has had 2 errors"
    )


class Pulse:
    """Stands for a heartbeat."""

    paused, step, doing, started = True, 0, "", 0

    def start(self) -> None:
        self.started += 1


def test_hangs_are_watched_for_after_the_first_steps_and_before_the_first_log_line() -> None:
    ours, pulse = Watcher(WatchConfig(checksum_every=0), Path("nowhere")), Pulse()
    ours._heartbeat = pulse  # type: ignore[assignment]
    for step in range(41, 46):
        assert (pulse.started, pulse.paused) == ((0, True) if step <= 42 else (1, False))
        ours.after_step(step, torch.tensor(True))
    assert (pulse.step, pulse.started) == (45, 1)


@pytest.mark.parametrize("block", [Watcher.evaluating, Watcher.saving])
def test_a_validation_and_a_checkpoint_may_take_any_time(
    block: Callable[[Watcher], AbstractContextManager[None]],
) -> None:
    ours = Watcher(WatchConfig(), Path("nowhere"))
    with block(ours):
        pass
    heartbeat = SimpleNamespace(paused=False)
    ours._heartbeat = heartbeat  # type: ignore[assignment]
    with block(ours):
        assert heartbeat.paused
    assert not heartbeat.paused


def test_other_weights_are_named_with_the_steps_between_which_they_changed() -> None:
    ours = Watcher(WatchConfig(), Path("nowhere"))
    model = nn.Linear(2, 2)
    ours._replicas = SimpleNamespace(model=model)  # type: ignore[assignment]
    same = {100: [1, 2], 200: [3, 4]}
    ours._check_hashes([Look("a", 0, same, None), Look("b", 0, same, None)])
    with pytest.raises(CommonError) as caught:
        ours._check_hashes([Look("a", 0, {300: [3, 4]}, None), Look("b", 0, {300: [3, 5]}, None)])
    said = "the weights of rank 1 on b differ from those of rank 0 at step 300, but not at step 200 (bias"
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["every", "slow_percent", "checksum_every", "hang_seconds"])
def test_negative_settings_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", f"watch.{name}=-1"]) == 2
    assert f"watch.{name}=-1" in capsys.readouterr().err
