"""How long the passes of this process take in which it does not wait for other processes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from nmt.data.loader import MicroBatch

MAX_PASSES = 1000
"""The most passes that are remembered between two looks."""
MIN_PASSES = 10
"""Fewer passes than these say little."""


class Pass(NamedTuple):
    """The beginning and the end of a pass, and its tokens."""

    tokens: int
    begin: Any
    end: Any


class PassTimes:
    """Measures the passes of a model in training in which processes do not wait for each other.

    These are the forward passes, or whole passes that are replayed. On a GPU nothing waits for the measurement.
    """

    def __init__(self, objective: nn.Module, device: torch.device, *, replays: bool = False) -> None:
        """Measure the forward passes of an objective, which must not be wrapped, or `replays`."""
        self._on_gpu = device.type == "cuda"
        self._passes: list[Pass] = []
        self._begin: Any = None
        if replays:
            return
        objective.register_forward_pre_hook(self._before)
        objective.register_forward_hook(self._after)

    def take(self) -> float:
        """Return the seconds per token since the last call; 0 if there were too few passes. A GPU must be done."""
        passes, self._passes = self._passes, []
        tokens = sum(each.tokens for each in passes)
        if len(passes) < MIN_PASSES or not tokens:
            return 0.0
        return sum(_seconds(each) for each in passes) / tokens

    @contextmanager
    def replay(self, batch: MicroBatch) -> Iterator[None]:
        """Measure the replay of a recorded pass in this block."""
        begin = self._now()
        yield
        self._add(batch, begin)

    def _before(self, module: nn.Module, _: object) -> None:
        self._begin = self._now() if module.training else None

    def _after(self, _: nn.Module, inputs: tuple[Any, ...], __: object) -> None:
        batch = inputs[0]
        if self._begin is not None and isinstance(batch, MicroBatch):
            self._add(batch, self._begin)

    def _add(self, batch: MicroBatch, begin: Any) -> None:
        if len(self._passes) < MAX_PASSES:
            tokens = len(batch.source.tokens) + len(batch.target.tokens)
            self._passes.append(Pass(tokens, begin, self._now()))

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def _seconds(each: Pass) -> float:
    if isinstance(each.begin, float):
        return float(each.end - each.begin)
    each.end.synchronize()
    return float(each.begin.elapsed_time(each.end)) / 1000


def slow_ranks(seconds: Sequence[float], percent: float) -> dict[int, float]:
    """Return the ranks that are slower than the usual one by more than this, and by how many percent.

    The usual one is the median, or the faster one of two. Ranks without a time are left out.
    """
    known = sorted(each for each in seconds if each > 0)
    if len(known) < 2:
        return {}
    usual = known[(len(known) - 1) // 2]
    excess = {rank: 100 * (each / usual - 1) for rank, each in enumerate(seconds)}
    return {rank: each for rank, each in excess.items() if each > percent}
