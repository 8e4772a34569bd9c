"""Faults of training, in one process or in one of two."""

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from faults import injections
from faults.injections import Injection
from faults.process_pairs import SHORT_TIMEOUT, run_pair
from faults.recovery import LostError, Outcome, Trial, TrialFunction, Verdict, check_same, recover
from faults.sandbox import SAVE_EVERY, STEPS, Sandbox


def faults_of_training(rng: random.Random) -> Iterator[Trial]:
    """Yield faults of training in one process."""
    for step, act in ((1, injections.no_memory), (1, injections.no_memory_on_a_cpu), (8, injections.no_memory),
                      (rng.randrange(2, STEPS), injections.no_memory_on_a_cpu)):  # fmt: skip
        run_trial = _reported("train", injections.at_step(step, act), "out of memory")
        yield Trial("out of memory", "train", f"at step {step}", run_trial)
    for first in (4, 5, 7):
        run_trial = _reported("train", injections.poison(range(first, 100)), f"in a row, from step {first} on")
        yield Trial("NaN in all later steps", "train", f"from step {first}", run_trial)
    for step in (2, rng.randrange(3, STEPS)):
        yield Trial("NaN in one step", "train", f"step {step}", _one_nan(step))
    yield Trial("W&B unreachable", "train", "no server", _without_tracker)


def _reported(command: str, injection: Injection, words: str) -> TrialFunction:
    """The command must end with a line that contains these words, and succeed when repeated."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        done = sandbox.run(command, folder, injection=injection)
        if words not in done.complaint:
            raise LostError(f"{words!r} is not in its one line: {done.last_line}")
        return recover(sandbox, folder, command)

    return run_trial


def _one_nan(step: int) -> TrialFunction:
    """Training must skip and report the step, and an interruption after it must not change the result."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        twin = sandbox.copy("train", folder.with_name(folder.name + ".twin"))
        done = sandbox.run("train", folder, injection=injections.poison(range(step, step + 1)))
        if done.code or f"nothing was changed at step {step} " not in done.errors:
            raise LostError(f"step {step} is not named: {done.last_line}")
        sandbox.run("train", twin, f"training.steps={step}", injection=injections.poison(range(step, step + 1)))
        sandbox.run("train", twin)
        if sandbox.compare(twin, "train", sandbox.products_of(folder)):
            raise LostError("an interruption after the bad step changes the result")
        return Outcome(Verdict.RECOVERED)

    return run_trial


def _without_tracker(sandbox: Sandbox, folder: Path) -> Outcome:
    done = sandbox.run("train", folder, "tracking.wandb=online", injection=injections.unreachable_tracker)
    if done.code or "Weights & Biases does not work" not in done.errors:
        raise LostError(f"exit code {done.code}: {done.last_line}")
    return check_same(sandbox, folder, "train")


def faults_of_pairs(rng: random.Random) -> Iterator[Trial]:
    """Yield faults of one of two processes."""
    acts: dict[str, tuple[Callable[..., None], str]] = {
        "rank killed": (lambda _: injections.kill(), "another process has ended"),
        "rank hung": (lambda _: os.kill(os.getpid(), signal.SIGSTOP), "has not answered"),
        "rank with an error of its own": (
            injections.raise_unexpected,
            "another process has ended",
        ),
        "rank that drifts": (injections.drift, "the weights of rank 1 differ from those of rank 0"),
    }
    for kind, (act, words) in acts.items():
        for step in (rng.randrange(1, SAVE_EVERY + 1), rng.randrange(SAVE_EVERY + 1, STEPS)):
            yield Trial(kind, "train", f"at step {step}", _pair(words, injections.at_step(step, act)))
    for setting in ("seed=7", "training.label_smoothing=0.2", "training.log_every=3"):
        yield Trial("rank with other settings", "train", setting, _pair("rank 1 has other settings", second=(setting,)))
    yield Trial("rank with other data", "train", "other text", _other_data)


def _pair(words: str, injection: Injection = injections.nothing, second: tuple[str, ...] = ()) -> TrialFunction:
    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        first, _ = run_pair(sandbox, folder, SHORT_TIMEOUT, injection=injection, second=second)
        if words not in first.errors or "Traceback" in first.errors:
            raise LostError(f"rank 0 did not say {words!r}: {first.last_line} (exit code {first.code})")
        ended = run_pair(sandbox, folder)
        if any(each.code for each in ended):
            raise LostError(f"the plain command fails: {ended[0].last_line}")
        if faults := sandbox.compare(folder, "train", sandbox.products_of_pair):
            raise LostError("; ".join(faults))
        return Outcome(Verdict.RECOVERED)

    return run_trial


def _other_data(sandbox: Sandbox, folder: Path) -> Outcome:
    other = folder / "other"
    shutil.copytree(folder / "data", other)
    text = f"data.train=[{sandbox.folder}/text/other.en,{sandbox.folder}/text/other.de]"
    if sandbox.run("data", folder, f"paths.data={other}", text).code:
        raise LostError("the other data could not be prepared")
    return _pair("rank 1 has other files", second=(f"paths.data={other}",))(sandbox, folder)
