"""Try inputs on a target, up to a number or a time limit."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from fuzz.side_effects import forbidding_side_effects
from nmt.errors import UserError

ROUND = 500
"""Inputs drawn before the generator restarts with another seed, so that the inputs stay diverse."""


class Attempt(NamedTuple):
    """The inputs of a target and their check."""

    inputs: SearchStrategy[Any]
    check: Callable[[Any], object]
    """Raises an error if an input has a wrong result; a UserError is a correct result of any input."""


Target = Callable[[Path], Attempt]
"""Returns the attempt, given an empty folder, the only one that it may change."""


@dataclass
class Outcome:
    """The result of trying a target."""

    tried: int = 0
    refused: int = 0
    """Inputs that ended in a UserError."""
    failures: list[BaseException] = field(default_factory=list)


class TimeLimitError(BaseException):
    """The time limit is over."""


def run(target: Target, folder: Path, examples: int, seconds: float = math.inf, first_seed: int = 1) -> Outcome:
    """Try a target until an input fails or a limit is reached."""
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
            raise TimeLimitError
        outcome.tried += 1
        try:
            with forbidding_side_effects(folder):
                attempt.check(value)
        except UserError as error:
            outcome.refused += 1
            if not str(error).strip():
                raise AssertionError("an error without a message") from error

    try:
        one()
    except TimeLimitError:
        return
    except BaseExceptionGroup as group:
        outcome.failures += group.exceptions
    except Exception as error:
        outcome.failures.append(error)
