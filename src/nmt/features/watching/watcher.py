"""Watch the processes of a run between its steps, and compare them at log lines."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.heartbeat import Heartbeat, shared_board
from nmt.config.schema import Config
from nmt.errors import CommonError
from nmt.features.watching.flight import FOLDER, last_operation, write_down
from nmt.features.watching.nvml import Gpu, Reading, find_gpu
from nmt.features.watching.settings import WatchConfig
from nmt.features.watching.speed import PassTimes, slow_ranks
from nmt.training.divergence import weight_hashes
from nmt.training.hook import Report, TrainingHook
from nmt.training.replicas import Replicas, UnaveragedReplicas

FIRST_STEPS = 2
"""Steps that may take any time, because they may compile: the second one if its sizes are new."""


class Look(NamedTuple):
    """What a process tells the others at a log line."""

    host: str
    seconds: float
    """Seconds per token of its forward passes; 0 if unknown."""
    hashes: dict[int, list[int]]
    """The checksums of its weights, by step."""
    gpu: Reading | None


def watcher(config: Config) -> "Watcher | None":
    """Return what watches a run; None if the settings or the machine leave nothing to watch."""
    watch = config.of(WatchConfig)
    if not watch.every or (distributed.world_size() == 1 and not torch.cuda.is_available()):
        return None
    return Watcher(watch, config.run_folder)


class Watcher(TrainingHook):
    """Names processes that hang, are slow or have other weights, and reads the state of the GPUs."""

    def __init__(self, config: WatchConfig, run_folder: Path) -> None:
        """See the settings."""
        self._config, self._folder = config, run_folder / FOLDER
        self._heartbeat: Heartbeat | None = None
        self._steps_left = FIRST_STEPS
        self._gpu: Gpu | None = None
        self._times: PassTimes | None = None
        self._replicas: Replicas
        self._hashes: dict[int, Tensor] = {}
        self._agreed_step = self._looked_step = -1
        self._named: set[int] = set()

    def begin(self, replicas: Replicas) -> None:
        """See `TrainingHook.begin`."""
        device = next(iter(replicas.trained.values())).device
        self._replicas, self._gpu = replicas, find_gpu(device)
        if distributed.world_size() == 1:
            return
        self._times = PassTimes(replicas.unwrapped, device, replays=isinstance(replicas, UnaveragedReplicas))
        replicas.around_replays.append(self._times.replay)
        board, rank = shared_board(), distributed.rank()
        if board is not None and self._config.hang_seconds:
            self._heartbeat = Heartbeat(
                board,
                rank,
                distributed.world_size(),
                seconds=self._config.hang_seconds,
                report=_print_warning,
                operations=last_operation,
                stuck=lambda: write_down(self._folder, rank),
            )
            replicas.unwrapped.register_forward_pre_hook(lambda *_: self._note("forward"))
            replicas.unwrapped.register_forward_hook(lambda *_: self._note("backward"))

    def _note(self, doing: str) -> None:
        assert self._heartbeat is not None
        self._heartbeat.doing = doing

    def after_step(self, step: int, finite: Tensor) -> None:
        """See `TrainingHook.after_step`. Nothing waits for the device here."""
        every = self._config.checksum_every
        if every and step % every == 0 and distributed.world_size() > 1 and not self._replicas.divides_weights:
            self._hashes[step] = weight_hashes(self._replicas.model)
        if self._heartbeat is not None:
            self._heartbeat.step, self._heartbeat.doing = step, "between steps"
            self._steps_left -= 1
            if self._steps_left == 0:
                self._heartbeat.paused = False
                self._heartbeat.start()

    def evaluating(self) -> AbstractContextManager[None]:
        """See `TrainingHook.evaluating`. A validation may take any time."""
        return self._paused()

    def saving(self) -> AbstractContextManager[None]:
        """See `TrainingHook.saving`. A checkpoint may take any time."""
        return self._paused()

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Watch nothing in this block."""
        if self._heartbeat is None:
            yield
            return
        before, self._heartbeat.paused = self._heartbeat.paused, True
        try:
            yield
        finally:
            self._heartbeat.paused = before

    def report(self, step: int) -> Report:
        """Compare the processes, if that is due."""
        if self._looked_step < 0:  # the first steps may compile for minutes
            self._looked_step = step
        if step - self._looked_step < self._config.every:
            return Report()
        self._looked_step = step
        host = self._heartbeat.host if self._heartbeat else ""
        hashes = {at: [int(each) for each in found.tolist()] for at, found in self._hashes.items()}
        self._hashes = {}
        own = Look(host, self._times.take() if self._times else 0.0, hashes, self._gpu.read() if self._gpu else None)
        looks = distributed.gather_objects(own)
        self._check_hashes(looks)
        figures, warnings = self._compare_speed(looks)
        for name in Reading._fields if all(each.gpu for each in looks) else ():
            figures[f"gpu_{name}"] = [getattr(each.gpu, name) for each in looks]
        return Report(figures, warnings)

    def _check_hashes(self, looks: list[Look]) -> None:
        """Raise an error in all processes if the weights of one differ from those of the first."""
        names = [name for name, _ in self._replicas.model.named_parameters()]
        for step in sorted(looks[0].hashes):
            for rank, each in enumerate(looks):
                if each.hashes[step] != looks[0].hashes[step]:
                    differ = [
                        name
                        for name, one, other in zip(names, each.hashes[step], looks[0].hashes[step], strict=True)
                        if one != other
                    ]
                    since = f", but not at step {self._agreed_step}" if self._agreed_step > 0 else ""
                    raise CommonError(
                        f"the weights of rank {rank} on {each.host or 'its machine'} differ from those of rank 0 at "
                        f"step {step}{since} ({differ[0]} and {len(differ) - 1} others): the memory or the device of "
                        "its machine may be faulty. The same command resumes from the last checkpoint"
                    )
            self._agreed_step = step

    def _compare_speed(self, looks: list[Look]) -> tuple[dict[str, object], list[str]]:
        """Return figures about the slowest process, and a warning about each that is newly slow."""
        seconds = [each.seconds for each in looks]
        if self._replicas.divides_weights or len(looks) == 1 or not all(seconds):
            return {}, []
        slow = slow_ranks(seconds, self._config.slow_percent) if self._config.slow_percent else {}
        new, self._named = set(slow) - self._named, set(slow)
        warnings = [_slow_warning(rank, slow[rank], looks[rank]) for rank in sorted(new)]
        slowest = max(range(len(seconds)), key=seconds.__getitem__)
        excess = slow_ranks(seconds, -100.0)[slowest]
        return {"slowest_rank": slowest, "slowest_percent": round(excess, 2)}, warnings

    def close(self) -> None:
        """See `TrainingHook.close`."""
        if self._heartbeat is not None:
            self._heartbeat.close()


def _slow_warning(rank: int, percent: float, look: Look) -> str:
    state = ""
    if look.gpu is not None:
        gpu = look.gpu
        state = f"; its GPU has {gpu.clock_mhz:.0f} MHz, {gpu.celsius:.0f} degrees Celsius and {gpu.watts:.0f} W"
        if gpu.memory_errors > 0:
            state += f", and its memory has had {gpu.memory_errors:.0f} errors"
    host = f" on {look.host}" if look.host else ""
    return f"rank {rank}{host} is slow: its passes take {percent:.0f}% longer per token than usual{state}"


def _print_warning(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr, flush=True)
