"""The settings that a run may leave open, and the values of each that are worth measuring.

A new choice is one line in `CHOICES`.
"""

import os
import shutil
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from nmt.compute.threads import MAX_WORKERS
from nmt.config.keys import all_keys, value_of
from nmt.config.schema import Config
from nmt.measuring.search import Value

SMALLEST_SHARE = 2048
"""The fewest tokens per micro-batch that are tried on a GPU, which needs more to be busy."""


class Situation(NamedTuple):
    """What the candidates of a setting depend on, with the choices made so far."""

    precision: str
    """fp32, bf16 or fp16."""
    threads: int
    parallel: int
    """Micro-batches computed in parallel."""
    share: int
    """Source tokens of a global batch per device."""
    compiled: bool = False


class Choice(NamedTuple):
    """A setting that a search may choose."""

    setting: str
    candidates: Callable[[Situation], Sequence[Value]]
    """Values to compare with what the runtime does if the setting is left open."""

    @property
    def open_value(self) -> Value:
        """The value that leaves the setting open: its default."""
        value: Value = all_keys()[self.setting].default
        return value

    @property
    def type(self) -> type:
        """The type of the candidates."""
        return bool if self.open_value is None else type(self.open_value)


def _shares(situation: Situation) -> list[Value]:
    """Split the share of the batch of a device in two and in four: smaller tensors leave memory and fit in caches."""
    return [share for parts in (2, 4) if (share := -(-situation.share // parts)) >= SMALLEST_SHARE]


def _other_precision(situation: Situation) -> list[Value]:
    return ["fp32" if situation.precision == "bf16" else "bf16"]


def _fewer_threads(situation: Situation) -> list[Value]:
    """Halve the threads, as far as one: hyper-threads and neighbours can make all cores slower than some."""
    counts, threads = list[Value](), situation.threads // 2
    while threads:
        counts.append(threads)
        threads //= 2
    return counts


def _parallel(situation: Situation) -> list[Value]:
    divisors = (count for count in range(1, MAX_WORKERS + 1) if situation.threads % count == 0)
    return [count for count in divisors if count != situation.parallel]


def _attention(_: Situation) -> list[Value]:
    return ["padded", "flash", "short"]


def _loss_rows(situation: Situation) -> list[Value]:
    return [rows for rows in (2048, 4096, 16_384) if rows < situation.share]


def _compiled(_: Situation) -> list[Value]:
    return [True]


def _cuda_graphs(situation: Situation) -> list[Value]:
    return [True] if situation.compiled else []  # else they are on already


def _compiled_with_a_compiler(_: Situation) -> list[Value]:
    compilers = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "clang++"]
    return [True] if any(shutil.which(compiler) for compiler in compilers) else []


CHOICES = {
    "cuda": (
        # a smaller micro-batch comes first, because nothing else can be measured if the memory is too small
        Choice("training.device_tokens", _shares),
        Choice("runtime.attention", _attention),
        Choice("runtime.loss_rows", _loss_rows),
        Choice("runtime.compile", _compiled),
        Choice("runtime.cuda_graphs", _cuda_graphs),
    ),
    "cpu": (
        Choice("runtime.precision", _other_precision),
        Choice("runtime.threads", _fewer_threads),
        Choice("runtime.parallel", _parallel),
        Choice("runtime.compile", _compiled_with_a_compiler),
    ),
}
"""By type of device, in the order in which they are made."""
TUNABLE = {choice.setting: choice for choices in CHOICES.values() for choice in choices}
"""Every choice by its setting."""


def open_choices(config: Config, device: str, wanted: Collection[str] = ()) -> list[Choice]:
    """Return the choices that a run on this type of device leaves open, or only the `wanted` ones among them."""
    return [
        choice
        for choice in CHOICES.get(device, ())
        if value_of(config, choice.setting) == choice.open_value and (not wanted or choice.setting in wanted)
    ]
