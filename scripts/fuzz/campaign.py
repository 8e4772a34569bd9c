"""Tries inputs on a target, as many as are asked for or as time allows."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from nmt.errors import UserError
from scripts.fuzz.watch import watching

ROUND = 500
"""Inputs that are drawn before drawing begins anew, so that one vein is not mined forever."""


class Attempt(NamedTuple):
    """How a target is tried."""

    inputs: SearchStrategy[Any]
    check: Callable[[Any], object]
    """Fails on whatever should not have come of an input; what a user is told in one line may come of any."""


Target = Callable[[Path], Attempt]
"""Made in an empty folder, the only one that trying it may change."""


@dataclass
class Outcome:
    """What came of a target."""

    tried: int = 0
    refused: int = 0
    """Inputs that ended in one clear line."""
    failures: list[BaseException] = field(default_factory=list)


class OverError(BaseException):
    """The time is up."""


def run(target: Target, folder: Path, examples: int, seconds: float = math.inf, first_seed: int = 1) -> Outcome:
    """Try a target until something fails, or there have been enough inputs, or time is up."""
    attempt, outcome, end = target(folder), Outcome(), time.monotonic() + seconds
    number = first_seed
    while outcome.tried < examples and not outcome.failures and time.monotonic() < end:
        before = outcome.tried
        _round(attempt, folder, min(ROUND, examples - before), number, outcome, end)
        number += 1
        if outcome.tried == before:
            break
    return outcome


def _round(attempt: Attempt, folder: Path, examples: int, number: int, outcome: Outcome, end: float) -> None:
    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        print_blob=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(attempt.inputs)
    def one(value: Any) -> None:
        if time.monotonic() > end:
            raise OverError
        outcome.tried += 1
        try:
            with watching(folder):
                attempt.check(value)
        except UserError as error:
            outcome.refused += 1
            if not str(error).strip():
                raise AssertionError("an error that says nothing") from error

    try:
        one()
    except OverError:
        return
    except BaseExceptionGroup as group:
        outcome.failures += group.exceptions
    except Exception as error:
        outcome.failures.append(error)
