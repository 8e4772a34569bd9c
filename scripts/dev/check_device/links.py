"""Check and time what several devices do together; started as a program, this is one of their processes.

The parent process trains one step alone, and the devices train the same step together: loss and gradient must agree.
"""

import json
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from check_device.accuracy import TOLERANCES, WORDS, small_run
from check_device.speed import wait
from nmt.compute import distributed
from nmt.compute.machine import Machine, prepare_machine
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.data.synthetic import synthetic_pairs
from nmt.training.new_trainer import new_trainer
from shared.synthetic import synthetic_batches

BYTES = (2**10, 2**20, 2**26)
"""Sizes of the sums to time; the last is about a quarter of base's gradient."""
STEPS = 10
MARK = "result: "
"""Precedes the line of JSON that the first process prints."""


class Step(NamedTuple):
    """What a training step computed, and how fast."""

    loss: float
    gradient_norm: float
    tokens_per_second: float


class Links(NamedTuple):
    """What several devices did together."""

    devices: int
    sums_are_exact: bool
    all_reduce_bytes_per_second: dict[str, float]
    """Bandwidth of each link in a ring, by the bytes that are summed."""
    alone: Step
    together: Step
    correct: bool


def compare(device: str, devices: int, seconds: float) -> Links:
    """Train with several processes, and compare with one; raise an error if a process fails."""
    command = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={devices}",
        str(Path(__file__)),
        device,
    ]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=seconds, check=False, env=_environment()
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{devices} processes failed: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(lines[0].removeprefix(MARK))
    config = _settings(device)
    alone, together = train(config, prepare_machine(config.runtime)), Step(**found["step"])
    tolerance = TOLERANCES["tf32" if device == "cuda" else "fp32"]
    agree = all(abs(ours / theirs - 1) < tolerance for ours, theirs in zip(together[:2], alone[:2], strict=True))
    return Links(devices, found["exact"], found["bandwidth"], alone, together, correct=agree and found["exact"])


def _environment() -> dict[str, str]:
    import os  # noqa: PLC0415

    paths = [str(Path(__file__).parents[1]), *(path for path in sys.path if path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _settings(device: str) -> Config:
    return with_values(small_run(device), {"runtime.precision": "fp32", "training.batch_tokens": 4000})


def train(config: Config, machine: Machine) -> Step:
    """Train a small model without dropout; the batches do not depend on the number of devices."""
    trainer = new_trainer(config, machine, WORDS, WORDS)
    stream = synthetic_batches(trainer, synthetic_pairs(WORDS, WORDS, pairs=5000, max_length=config.data.max_pieces))
    first, *others = islice(stream, STEPS)
    trainer.update(first)
    loss, norm = trainer.take_statistics().loss, float(trainer.gradient_norm)
    started = time.perf_counter()
    for batch in others:
        trainer.update(batch)
    wait(machine.device)
    return Step(loss, norm, sum(batch.tokens for batch in others) / (time.perf_counter() - started))


def main() -> None:
    """Be one of several processes."""
    config = _settings(sys.argv[1])
    with distributed.session(config.runtime) as machine:
        exact = _sums_are_exact(machine.device)
        bandwidth = {str(count): _bandwidth(machine.device, count) for count in BYTES}
        step = train(config, machine)
        if distributed.is_main():
            print(f"{MARK}{json.dumps({'exact': exact, 'bandwidth': bandwidth, 'step': step._asdict()})}", flush=True)


def _sums_are_exact(device: torch.device) -> bool:
    """Sum whole numbers, for which float32 is exact."""
    size, own = distributed.world_size(), distributed.rank() + 1
    summed = distributed.sum_over_processes(own * torch.arange(10_000.0, device=device))
    return bool((summed == size * (size + 1) / 2 * torch.arange(10_000.0, device=device)).all())


def _bandwidth(device: torch.device, count: int) -> float:
    values = torch.zeros(count // 4, device=device)
    best = float("inf")
    for _ in range(5):
        wait(device)
        started = time.perf_counter()
        distributed.sum_over_processes(values)
        wait(device)
        best = min(best, time.perf_counter() - started)
    return 2 * (distributed.world_size() - 1) / distributed.world_size() * count / best


if __name__ == "__main__":
    main()
