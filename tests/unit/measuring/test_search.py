"""The search for the fastest settings, with trainers whose times are invented."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from nmt.compute.time_limit import OutOfTimeError
from nmt.measuring import search
from nmt.measuring.search import MAX_ROUNDS, Check, Outcome, Row, Search, Settings, Value

TOKENS = 1000


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeContender:
    check: Check
    seconds: float
    bench: "FakeBench"
    closed: bool = False

    def step(self, round_: int) -> float:
        assert not self.closed
        seconds = self.seconds * self.bench.load()
        self.bench.clock.now += seconds
        return seconds

    def tokens(self, round_: int) -> int:
        return TOKENS

    def close(self) -> None:
        assert not self.closed
        self.closed = True
        self.bench.open_now -= 1


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the limits of time that a search sets, which do not end anything."""
    found: list[float] = []

    @contextmanager
    def time_limit(seconds: float) -> Iterator[None]:
        found.append(seconds)
        yield

    monkeypatch.setattr(search, "time_limit", time_limit)
    return found


@dataclass
class FakeBench:
    """Each value of a setting multiplies the seconds of a step; an exception is raised when it is opened."""

    factors: Mapping[str, Mapping[Value, float | BaseException]]
    checks: Mapping[Value, Check] = field(default_factory=dict)
    seconds_to_open: float = 0.0
    default: Exception | None = None
    loads: Sequence[float] = (1.0,)
    clock: Clock = field(default_factory=Clock)
    steps: int = 0
    open_now: int = 0
    most_open: int = 0

    def load(self) -> float:
        """Return the load of the machine, which slows down every step."""
        self.steps += 1
        return self.loads[self.steps % len(self.loads)]

    def candidates(self, setting: str, chosen: Settings) -> Sequence[Value]:
        return list(self.factors[setting])

    def open(self, settings: Settings) -> FakeContender:
        seconds, check = 1.0, Check(10.0, 2.0, "fp32")
        self.clock.now += self.seconds_to_open
        if not settings and self.default is not None:
            raise self.default
        for setting, value in settings.items():
            factor = self.factors[setting][value]
            if isinstance(factor, BaseException):
                raise factor
            seconds *= factor
            check = self.checks.get(value, check)
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        return FakeContender(check, seconds, self)


def tune(bench: FakeBench, seconds: float = 1000.0) -> Outcome:
    outcome = Search(bench, seconds, clock=bench.clock).run(list(bench.factors))
    assert bench.open_now == 0
    assert bench.most_open <= 2
    return outcome


def row(outcome: Outcome, candidate: Value) -> Row:
    (found,) = (each for each in outcome.table if each.candidate == candidate)
    return found


def test_fastest_candidate_of_each_choice_is_chosen() -> None:
    outcome = tune(FakeBench({"a": {1: 2.0, 2: 0.5, 3: 0.8}, "b": {"x": 0.5, "y": 1.5}}))
    assert outcome.settings == {"a": 2, "b": "x"}
    assert row(outcome, 2).ratio == pytest.approx(2)
    assert row(outcome, 3).ratio == pytest.approx(1 / 0.8)
    assert row(outcome, "x").ratio == pytest.approx(4)
    assert row(outcome, "x").tokens_per_second == pytest.approx(TOKENS / 0.25)
    assert outcome.table[0] == Row("default", None, TOKENS, 1.0)


def test_gain_within_the_noise_changes_nothing() -> None:
    assert tune(FakeBench({"a": {1: 0.99, 2: 1.0}})).settings == {}


def test_load_that_comes_and_goes_does_not_decide() -> None:
    """The machine is three times as slow for some rounds; the candidate is 10% faster in each of them."""
    loads = [1.0] * 6 + [3.0] * 8
    outcome = tune(FakeBench({"a": {1: 0.9}}, loads=loads))
    assert outcome.settings == {"a": 1}
    assert row(outcome, 1).ratio == pytest.approx(1 / 0.9)


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory\nmore lines"), MemoryError(), ValueError("no")])
def test_failing_candidate_is_a_row_and_not_an_end(error: Exception) -> None:
    outcome = tune(FakeBench({"a": {1: error, 2: 0.5}, "b": {"x": 0.5}}))
    assert outcome.settings == {"a": 2, "b": "x"}
    failed = row(outcome, 1)
    assert failed.tokens_per_second is failed.ratio is None
    assert failed.note.startswith(f"failed: {type(error).__name__}")
    assert "\n" not in failed.note


@pytest.mark.parametrize(
    ("check", "word"),
    [
        (Check(10.01, 2.0, "fp32"), "loss is 10.01 instead of 10"),
        (Check(10.0, 2.1, "fp32"), "gradient norm is 2.1 instead of 2"),
        (Check(math.nan, 2.0, "fp32"), "loss is nan"),
        (Check(10.2, 2.0, "bf16"), "loss is 10.2"),
    ],
)
def test_candidate_that_computes_something_else_is_refused(check: Check, word: str) -> None:
    outcome = tune(FakeBench({"a": {1: 0.1, 2: 0.5}}, checks={1: check}))
    assert outcome.settings == {"a": 2}
    assert row(outcome, 1).note.startswith("refused: its ")
    assert word in row(outcome, 1).note


@pytest.mark.parametrize("check", [Check(10.0005, 2.001, "fp32"), Check(10.04, 2.05, "bf16")])
def test_rounding_is_no_reason_to_refuse(check: Check) -> None:
    assert tune(FakeBench({"a": {1: 0.5}}, checks={1: check})).settings == {"a": 1}


def test_tolerance_of_bf16_is_not_that_of_float32() -> None:
    outcome = tune(FakeBench({"a": {1: 0.5}}, checks={1: Check(10.04, 2.0, "fp32")}))
    assert outcome.settings == {}


def test_time_limit_of_a_choice_holds_without_the_warm_up() -> None:
    """Opening takes 100 s and a step 1 s: of 40 s, each of two candidates has 20, or ten rounds of two steps."""
    bench = FakeBench({"a": {1: 1.0, 2: 1.0}}, seconds_to_open=100.0)
    outcome = tune(bench, seconds=40.0)
    assert bench.clock.now == 3 * 100 + 3 + 40
    assert [each.note for each in outcome.table] == ["", "", ""]


def test_time_that_a_candidate_does_not_need_belongs_to_the_next() -> None:
    bench = FakeBench({"a": {1: RuntimeError("fails"), 2: 1.0}}, seconds_to_open=100.0)
    tune(bench, seconds=30.0)
    assert bench.clock.now == 3 * 100 + 3 + 30  # a failing one fails before any time has passed


def test_enough_time_does_not_mean_endless_rounds() -> None:
    bench = FakeBench({"a": {1: 1.0}})
    tune(bench, seconds=1000.0)
    assert bench.steps == 3 + 2 * MAX_ROUNDS


def test_candidate_that_compiles_for_longer_than_allowed_is_a_row(limits: list[float]) -> None:
    outcome = tune(FakeBench({"runtime.compile": {True: OutOfTimeError()}}), seconds=20.0)
    assert row(outcome, True).note == "failed: no time left"
    assert limits == [search.MAX_SECONDS_TO_OPEN, 20.0, search.MAX_SECONDS_TO_OPEN]


def test_end_of_the_time_inside_a_compiler_is_named_as_such() -> None:
    wrapped = RuntimeError("InternalTorchDynamoError")
    wrapped.__cause__ = OutOfTimeError()
    assert row(tune(FakeBench({"runtime.compile": {True: wrapped}})), True).note == "failed: no time left"


def test_a_candidate_that_is_much_slower_is_given_up() -> None:
    bench = FakeBench({"a": {1: 50.0, 2: 0.5}})
    outcome = tune(bench)
    assert outcome.settings == {"a": 2}
    assert row(outcome, 1).note == "given up: more than 4 times as slow as the best"
    assert bench.clock.now < 2 * 51 + 100  # two steps, and not one per round


def test_a_candidate_that_opens_much_more_slowly_is_given_up(limits: list[float]) -> None:
    outcome = tune(FakeBench({"a": {1: OutOfTimeError(), 2: 0.5}}, seconds_to_open=10.0))
    assert row(outcome, 1).note == "given up: more than 4 times as slow as the best"
    assert limits[2] == 40.0
    assert outcome.settings == {"a": 2}


def test_defaults_that_were_timed_once_are_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    step = FakeContender.step

    def late(self: FakeContender, index: int) -> float:
        if self.bench.steps >= 1:
            raise OutOfTimeError
        return step(self, index)

    monkeypatch.setattr(FakeContender, "step", late)
    outcome = tune(FakeBench({}))
    assert [each.note for each in outcome.table] == [""]


def test_defaults_that_fail_in_a_later_step_are_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    step = FakeContender.step

    def fail_once(self: FakeContender, index: int) -> float:
        if self.bench.steps == 1:
            self.bench.steps += 1
            raise MemoryError("later")
        return step(self, index)

    monkeypatch.setattr(FakeContender, "step", fail_once)
    outcome = tune(FakeBench({"a": {1: 1.0}}))
    assert outcome.table[0].note == "failed: MemoryError: later"
    assert outcome.settings == {"a": 1}


def test_first_candidate_that_works_replaces_defaults_that_fail() -> None:
    bench = FakeBench({"a": {1: MemoryError(), 2: 1.0, 3: 1.0}, "b": {"x": 0.5}}, default=MemoryError("default"))
    outcome = tune(bench)
    assert outcome.settings == {"a": 2, "b": "x"}
    assert outcome.table[0].note == "failed: MemoryError: default"
    assert row(outcome, "x").ratio == pytest.approx(2)


def test_loss_that_is_not_finite_is_refused_without_a_reference() -> None:
    bench = FakeBench({"a": {1: 1.0}}, checks={1: Check(math.nan, 1.0, "fp32")}, default=MemoryError())
    assert tune(bench).settings == {}


def test_nothing_works() -> None:
    outcome = tune(FakeBench({"a": {1: MemoryError()}}, default=MemoryError()))
    assert outcome.settings == {}
    assert all(each.tokens_per_second is None for each in outcome.table)


def test_interrupt_ends_the_search_and_frees_memory() -> None:
    bench = FakeBench({"a": {1: KeyboardInterrupt()}})
    with pytest.raises(KeyboardInterrupt):
        Search(bench, 10, clock=bench.clock).run(["a"])
    assert bench.open_now == 0
