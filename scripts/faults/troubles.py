"""Faults that training alone can meet, by itself or as one of two processes."""

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import injuries
from aftermath import LostError, Outcome, Play, Trial, Verdict, aftermath, check_same
from injuries import Injury
from ranks import SHORT, run_pair
from workshop import SAVE_EVERY, STEPS, Workshop


def of_training(rng: random.Random) -> Iterator[Trial]:
    """Faults that training alone can meet."""
    for step, act in ((1, injuries.no_memory), (1, injuries.no_memory_on_a_cpu), (8, injuries.no_memory),
                      (rng.randrange(2, STEPS), injuries.no_memory_on_a_cpu)):  # fmt: skip
        play = _told("train", injuries.at_step(step, act), "out of memory")
        yield Trial("out of memory", "train", f"at step {step}", play)
    for first in (4, 5, 7):
        play = _told("train", injuries.poison(range(first, 100)), f"in a row, from step {first} on")
        yield Trial("NaN for good", "train", f"from step {first}", play)
    for step in (2, rng.randrange(3, STEPS)):
        yield Trial("NaN in one step", "train", f"step {step}", _one_nan(step))
    yield Trial("W&B unreachable", "train", "nobody listens", _without_tracker)


def _told(stage: str, injury: Injury, words: str) -> Play:
    """The command must end with a line that says so; then all goes on."""

    def play(shop: Workshop, folder: Path) -> Outcome:
        done = shop.run(stage, folder, injury=injury)
        if words not in done.complaint:
            raise LostError(f"{words!r} is not in its one line: {done.last_line}")
        return aftermath(shop, folder, stage)

    return play


def _one_nan(step: int) -> Play:
    """A step is left out and named; interrupted or not, the rest is the same."""

    def play(shop: Workshop, folder: Path) -> Outcome:
        twin = shop.copy("train", folder.with_name(folder.name + ".twin"))
        done = shop.run("train", folder, injury=injuries.poison(range(step, step + 1)))
        if done.code or f"nothing was changed at step {step} " not in done.errors:
            raise LostError(f"step {step} is not named: {done.last_line}")
        shop.run("train", twin, f"training.steps={step}", injury=injuries.poison(range(step, step + 1)))
        shop.run("train", twin)
        if shop.compare(twin, "train", shop.products_of(folder)):
            raise LostError("interrupted after the bad step, it comes to another end")
        return Outcome(Verdict.RECOVERED)

    return play


def _without_tracker(shop: Workshop, folder: Path) -> Outcome:
    done = shop.run("train", folder, "tracking.wandb=online", injury=injuries.unreachable_tracker)
    if done.code or "Weights & Biases does not work" not in done.errors:
        raise LostError(f"exit code {done.code}: {done.last_line}")
    return check_same(shop, folder, "train")


def of_pairs(rng: random.Random) -> Iterator[Trial]:
    """Faults of one of two processes."""
    acts: dict[str, tuple[Callable[..., None], str]] = {
        "rank killed": (lambda _: injuries.kill(), "nmt: rank 0 stops because another process has ended"),
        "rank hung": (lambda _: os.kill(os.getpid(), signal.SIGSTOP), "has not answered"),
        "rank with an error of its own": (injuries.go_mad, "nmt: rank 0 stops because another process has ended"),
        "rank that drifts": (injuries.drift, "the weights of rank 1 are not those of rank 0"),
    }
    for kind, (act, words) in acts.items():
        for step in (rng.randrange(1, SAVE_EVERY + 1), rng.randrange(SAVE_EVERY + 1, STEPS)):
            yield Trial(kind, "train", f"at step {step}", _pair(words, injuries.at_step(step, act)))
    for setting in ("seed=7", "training.label_smoothing=0.2", "training.log_every=3"):
        yield Trial("rank with other settings", "train", setting, _pair("rank 1 has other settings", second=(setting,)))
    yield Trial("rank with other data", "train", "other text", _other_data)


def _pair(words: str, injury: Injury = injuries.nothing, second: tuple[str, ...] = ()) -> Play:
    def play(shop: Workshop, folder: Path) -> Outcome:
        first, _ = run_pair(shop, folder, SHORT, injury=injury, second=second)
        if words not in first.errors or "Traceback" in first.errors:
            raise LostError(f"rank 0 did not say {words!r}: {first.last_line} (exit code {first.code})")
        ended = run_pair(shop, folder)
        if any(each.code for each in ended):
            raise LostError(f"the plain command fails: {ended[0].last_line}")
        if faults := shop.compare(folder, "train", shop.products_of_pair):
            raise LostError("; ".join(faults))
        return Outcome(Verdict.RECOVERED)

    return play


def _other_data(shop: Workshop, folder: Path) -> Outcome:
    other = folder / "other"
    shutil.copytree(folder / "data", other)
    text = f"data.train=[{shop.folder}/text/other.en,{shop.folder}/text/other.de]"
    if shop.run("data", folder, f"paths.data={other}", text).code:
        raise LostError("the other data could not be prepared")
    return _pair("rank 1 has other files", second=(f"paths.data={other}",))(shop, folder)
