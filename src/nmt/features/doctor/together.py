"""Check and time what several devices do together; started as a program, this is one of their processes.

The parent process trains one step alone, and the devices train the same step together: loss and gradient must agree.
Then they train as a real run does: in the precision of the device, compiled, with long sentences.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

import nmt
from nmt.compute import distributed, joining
from nmt.compute.machine import Machine, prepare_machine
from nmt.config.keys import with_values
from nmt.config.schema import Config, RuntimeConfig, TrainingConfig
from nmt.data.synthetic import synthetic_pairs
from nmt.features.doctor import speed
from nmt.measuring import accuracy
from nmt.measuring.steps import free_memory, measured_batches, peak_memory, wait
from nmt.training.hook import closing_hooks
from nmt.training.new_trainer import new_trainer

BYTES = (2**10, 2**20, 2**26)
"""Sizes of the sums to time; the last is about a quarter of base's gradient."""
COMPARED_STEPS = 10
BATCHES = 20
"""Global batches that a long run repeats."""
SECONDS_TO_END = 35.0
"""Torchrun kills processes that have not ended half a minute after it told them to."""
WARMUP_STEPS = 400
"""Steps of warmup of a long run, which is far shorter than the one the paper's value is for."""
MAX_GROWTH = 1.02
"""Growth of the loss of one batch that dropout masks explain."""
TORCHRUN = "torch/distributed/elastic/"
"""In the lines that torchrun logs when a process has failed."""
MARK = "result: "
"""Precedes the line of JSON that the first process prints."""


class Step(NamedTuple):
    """What a training step computed."""

    loss: float
    gradient_norm: float


class Run(NamedTuple):
    """What a run of some hundred steps did."""

    name: str
    devices: int
    precision: str
    compiled: bool
    steps: int
    first_loss: float
    last_loss: float
    tokens_per_second: float
    """Source and target tokens of all devices, in the second half of the steps."""
    memory: int
    """Peak in bytes of one process."""
    correct: bool
    """Whether the loss is finite and has not grown."""


class Links(NamedTuple):
    """What several devices did together."""

    devices: int
    sums_are_exact: bool
    all_reduce_bytes_per_second: dict[str, float]
    """Bandwidth of each link in a ring, by the bytes that are summed."""
    alone: Step
    together: Step
    correct: bool


class Task(NamedTuple):
    """What the processes do, as one argument of the program."""

    device: str
    model: str
    compiled: bool
    batch_tokens: int
    device_tokens: int
    steps: int

    def config(self) -> Config:
        """Return the settings of the long run."""
        config = Config(
            training=TrainingConfig(batch_tokens=self.batch_tokens, device_tokens=self.device_tokens),
            runtime=RuntimeConfig(device=self.device),
        )
        return speed.run_settings(self.model, config, compiled=self.compiled)


def long_run(name: str, config: Config, machine: Machine, steps: int) -> Run:
    """Train for some hundred steps; all processes must call this."""
    training = replace(config.training, warmup_steps=WARMUP_STEPS)
    text = speed.training_text()
    trainer = speed.fitting_trainer(replace(config, training=training), machine, text)
    few = list(islice(measured_batches(trainer, text), min(BATCHES, steps)))
    trainer.update(few[0])
    first = trainer.take_statistics().loss
    first_half, second_half = (list(islice(cycle(few), count)) for count in (steps // 2, steps - 1 - steps // 2))
    speed.timed_steps(trainer, first_half)  # a GPU records passes
    seconds = speed.timed_steps(trainer, second_half)
    trainer.take_statistics()
    trainer.update(few[0])
    last = trainer.take_statistics().loss
    tokens = sum(batch.tokens for batch in second_half)
    return Run(
        name,
        distributed.world_size(),
        machine.precision_name,
        bool(config.runtime.compile),
        steps,
        first,
        last,
        tokens / seconds if seconds else 0.0,
        peak_memory(machine.device),
        correct=last < MAX_GROWTH * first,
    )


def compare(task: Task, devices: int, seconds: float) -> tuple[Links, Run]:
    """Train with several processes, and compare with one; raise an error if a process fails."""
    found = _start(task, devices, seconds)
    config = _small_settings(task.device)
    alone, together = train(config, prepare_machine(config.runtime)), Step(**found["step"])
    tolerance = accuracy.TOLERANCES["tf32" if task.device == "cuda" else "fp32"]
    agree = all(abs(ours / theirs - 1) < tolerance for ours, theirs in zip(together, alone, strict=True))
    links = Links(devices, found["exact"], found["bandwidth"], alone, together, correct=agree and found["exact"])
    return links, Run(**found["run"])


def _start(task: Task, devices: int, seconds: float) -> dict[str, Any]:
    """Start the processes, and return what the first one prints."""
    free_memory()
    command = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}", "-m", __name__]
    paths = [str(Path(nmt.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = _finished([sys.executable, *command, json.dumps(task)], environment, seconds)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{devices} processes failed: {_last_words(done.stderr)}")
    found: dict[str, Any] = json.loads(lines[0].removeprefix(MARK))
    return found


def _last_words(errors: str) -> str:
    """Return the end of what the processes wrote, which torchrun's report of their exit codes follows."""
    own, mark, _ = errors.partition(TORCHRUN)
    return (own.rpartition("\n")[0] if mark else errors).strip()[-500:]


def _finished(command: list[str], environment: dict[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run torchrun; if it does not end in time, let it end its processes, which would keep the devices busy."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _small_settings(device: str) -> Config:
    return with_values(accuracy.small_run(device), {"runtime.precision": "fp32", "training.batch_tokens": 4000})


def train(config: Config, machine: Machine) -> Step:
    """Train a small model without dropout; the batches do not depend on the number of devices."""
    words = accuracy.WORDS
    trainer = new_trainer(config, machine, words, words)
    text = synthetic_pairs(words, words, pairs=5000, max_length=config.data.max_pieces)
    with closing_hooks(trainer.hooks):
        for batch in islice(measured_batches(trainer, text), COMPARED_STEPS):
            trainer.update(batch)
    return Step(trainer.take_statistics().loss, float(trainer.gradient_norm))


def main() -> None:
    """Be one of several processes."""
    task = Task(*json.loads(sys.argv[1]))
    config = task.config()
    with joining.session(config.runtime) as machine:
        small = _small_settings(task.device)
        found = {
            "exact": _sums_are_exact(machine.device),
            "bandwidth": {str(count): _bandwidth(machine.device, count) for count in BYTES},
            "step": train(small, Machine(machine.device, torch.float32))._asdict(),
            "run": long_run(task.model, config, machine, task.steps)._asdict(),
        }
        if distributed.is_main():
            print(f"{MARK}{json.dumps(found)}", flush=True)


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
