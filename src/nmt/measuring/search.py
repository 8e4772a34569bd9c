"""Choose the fastest settings greedily: one choice after the other, each candidate compared with the best so far.

The candidate and the best so far train in turn, A B A B, on the same batches. So the load of a shared machine affects
both alike, and the ratio of the times of each pair of steps is steadier than the times themselves.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from nmt.compute.time_limit import OutOfTimeError, time_limit

Value = str | int | bool | None
Settings = Mapping[str, Value]
"""Values of settings by dotted name."""

DEFAULT = "default"
"""Name of the first row of the table, in which no choice is made."""
MAX_NOTE = 120
"""Most characters of a note."""
MIN_GAIN = 1.02
"""The least ratio of speeds at which a candidate replaces the best so far: smaller ones may be chance."""
MIN_ROUNDS, MAX_ROUNDS = 3, 20
"""Pairs of steps that a comparison needs, and that it makes if there is time."""
HOPELESS = 4
"""A candidate that takes this many times as long as the best so far, to open or for a step, is given up."""
MIN_PATIENCE_SECONDS = 5.0
"""The least time that a candidate gets to open: small models open in less, whatever the settings."""
MAX_SECONDS_TO_OPEN = 300.0
"""The most time to build a trainer, to warm it up and, if it is compiled, to compile it."""
GIVEN_UP = f"given up: more than {HOPELESS} times as slow as the best"
RELATIVE_TOLERANCES = {"fp32": (1e-4, 1e-3), "fp16": (1e-3, 1e-2), "bf16": (5e-3, 5e-2)}
"""How far loss and gradient norm may differ from those of the reference, by the lower of the two precisions.

bf16 keeps 8 bits, a relative error of 0.4% per product, and fp16 keeps 11. Errors of single tokens mostly cancel in the
loss, which is a mean over tokens, and less so in the gradient."""


class Check(NamedTuple):
    """What a step without dropout computed from the same weights and the same batch."""

    loss: float
    gradient_norm: float
    precision: str
    """fp32, bf16 or fp16."""


class Contender(Protocol):
    """A trainer with certain settings, ready to be timed."""

    check: Check

    def step(self, round_: int) -> float:
        """Train on the batch of a round, and return the seconds that it took."""

    def tokens(self, round_: int) -> int:
        """Return the source and target tokens of the batch of a round."""

    def close(self) -> None:
        """Free its memory."""


class Workbench(Protocol):
    """Makes contenders, and knows what can be chosen."""

    def candidates(self, setting: str, chosen: Settings) -> Sequence[Value]:
        """Return the values of a setting that are worth trying, given what is chosen already."""

    def open(self, settings: Settings) -> Contender:
        """Build a trainer with these settings, and warm it up."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: what a candidate achieved."""

    setting: str
    candidate: Value
    """The value of the setting; None in the first row."""
    tokens_per_second: float | None = None
    """None if the candidate failed or was refused."""
    ratio: float | None = None
    """Speed compared with the run's default settings."""
    note: str = ""


class Outcome(NamedTuple):
    """The result of a search."""

    settings: dict[str, Value]
    """The chosen settings that differ from the defaults."""
    table: list[Row]


class _Round(NamedTuple):
    """The seconds of the best so far and of a candidate, on the same batch."""

    best: float
    candidate: float
    tokens: int


@dataclass
class Search:
    """A greedy search over the choices of a workbench."""

    bench: Workbench
    seconds_per_choice: float
    """Time for the steps of a choice. It begins after the warm-up, which may compile."""
    report: Callable[[Row], None] = lambda _: None
    """Called with each row of the table as soon as it is known."""
    clock: Callable[[], float] = time.perf_counter
    max_seconds_to_open: float = MAX_SECONDS_TO_OPEN
    _table: list[Row] = field(default_factory=list)
    _settings: dict[str, Value] = field(default_factory=dict)
    _best: Contender | None = None
    _best_ratio: float = 1.0
    _seconds_to_open: float = math.inf
    """How long the default settings took to open and warm up."""
    _reference: Check | None = None

    def run(self, choices: Sequence[str]) -> Outcome:
        """Make each choice in turn. A candidate that fails, or whose loss differs, is a row of the table."""
        try:
            self._open_default()
            for setting in choices:
                self._choose(setting)
        finally:
            if self._best is not None:
                self._best.close()
        return Outcome(self._settings, self._table)

    def _open_default(self) -> None:
        """Open and time the default settings; if they fail, the first candidate that works is the reference."""
        contender, seconds, start, failure = None, list[float](), self.clock(), ""
        try:
            with time_limit(self.max_seconds_to_open):
                contender = self.bench.open({})
            self._seconds_to_open = self.clock() - start
            with time_limit(self.seconds_per_choice):
                seconds.extend(contender.step(0) for _ in range(MIN_ROUNDS))
        except Exception as error:
            if not (_is_out_of_time(error) and seconds):
                failure = _failure(error)
                seconds.clear()
        if failure:
            self._add(Row(DEFAULT, None, note=failure))
        if contender is not None and seconds:
            self._best, self._reference = contender, contender.check
            self._add(Row(DEFAULT, None, contender.tokens(0) / statistics.median(seconds), 1.0))
        elif contender is not None:
            contender.close()

    def _choose(self, setting: str) -> None:
        """Compare the candidates of one setting; those that remain share the time that remains."""
        left = self.seconds_per_choice
        candidates = self.bench.candidates(setting, self._settings)
        for done, candidate in enumerate(candidates):
            left -= self._try(setting, candidate, left / (len(candidates) - done))

    def _try(self, setting: str, candidate: Value, seconds: float) -> float:
        """Open and time one candidate, keep the faster of it and the best so far, and return the seconds of the steps.

        Opening has a limit of its own, because compiling takes longer than the steps that it makes faster.
        """
        contender, rounds, note = None, list[_Round](), ""
        settings = {**self._settings, setting: candidate}
        patience, start = self._patience(settings), self.clock()
        try:
            with time_limit(patience):
                contender = self.bench.open(settings)
            start = self.clock()
            with time_limit(seconds):
                end = start + seconds
                note = _difference(contender.check, self._reference) or self._alternate(contender, end, rounds)
        except Exception as error:
            if _is_out_of_time(error) and contender is None and patience < self.max_seconds_to_open:
                note = GIVEN_UP
            elif not (_is_out_of_time(error) and len(rounds) >= MIN_ROUNDS):
                note = _failure(error)
        taken = self.clock() - start if contender else 0.0
        if contender is None or note:
            self._add(Row(setting, candidate, note=note))
        elif self._keeps(setting, candidate, contender, rounds):
            return taken
        if contender is not None:
            contender.close()
        return taken

    def _patience(self, settings: Settings) -> float:
        """Return how long a candidate may take to open; compilation takes much longer than what it speeds up."""
        if settings.get("runtime.compile"):
            return self.max_seconds_to_open
        return min(self.max_seconds_to_open, max(MIN_PATIENCE_SECONDS, HOPELESS * self._seconds_to_open))

    def _alternate(self, contender: Contender, end: float, rounds: list[_Round]) -> str:
        """Add the times of steps of the best so far and of the candidate, in turn; return why it is given up, if so."""
        best = self._best or contender
        while len(rounds) < MAX_ROUNDS and (len(rounds) < MIN_ROUNDS or self.clock() < end):
            number = len(rounds)
            rounds.append(_Round(best.step(number), contender.step(number), contender.tokens(number)))
            if number and all(each.candidate > HOPELESS * each.best for each in rounds):  # once may be chance
                return GIVEN_UP
        return ""

    def _keeps(self, setting: str, candidate: Value, contender: Contender, rounds: list[_Round]) -> bool:
        """Add the row of a candidate that was timed; return whether it replaces the best so far."""
        gain = statistics.median(each.best / each.candidate for each in rounds)
        speed = sum(each.tokens for each in rounds) / sum(each.candidate for each in rounds)
        self._add(Row(setting, candidate, speed, self._best_ratio * gain))
        if self._best is not None and gain < MIN_GAIN:
            return False
        if self._best is not None:
            self._best.close()
            self._best_ratio *= gain
        self._best, self._reference = contender, self._reference or contender.check
        self._settings[setting] = candidate
        return True

    def _add(self, row: Row) -> None:
        self._table.append(row)
        self.report(row)


def _difference(check: Check, reference: Check | None) -> str:
    """Return how a candidate's loss or gradient differs from the reference; empty if both agree within rounding."""
    if reference is None:
        return "" if math.isfinite(check.loss) else f"refused: its loss is {check.loss}"
    tolerances = max(RELATIVE_TOLERANCES[each.precision] for each in (check, reference))
    for name, tolerance in zip(("loss", "gradient_norm"), tolerances, strict=True):
        found, expected = getattr(check, name), getattr(reference, name)
        if not abs(found - expected) <= tolerance * abs(expected):  # also true of NaN
            return f"refused: its {name.replace('_', ' ')} is {found:.6g} instead of {expected:.6g}"
    return ""


def _failure(error: Exception) -> str:
    """Return the first line of an error as a note."""
    if _is_out_of_time(error):
        return "failed: no time left"
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"failed: {type(error).__name__}: {first_line}"[:MAX_NOTE]


def _is_out_of_time(error: BaseException | None) -> bool:
    """Return whether an error, or one that it was raised from, is the end of the time; compilers wrap it in theirs."""
    while error is not None and not isinstance(error, OutOfTimeError):
        error = error.__cause__ or error.__context__
    return error is not None
