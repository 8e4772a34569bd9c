"""Steps, shape, batch and regularisation of planned runs, compared with rules that are stated here on their own."""

import math
from collections.abc import Callable

import pytest

from nmt.config.commands import DERIVED, OF_DATA, SHAPE
from nmt.config.compose import compose
from nmt.config.keys import with_values
from nmt.config.training import TrainingConfig
from nmt.errors import CommonError
from nmt.own_text.plan import BASE, BPE_DROPOUT_SETTING, NARROW, SHALLOW, WIDE, Plan, Shape, Text, plan, settings_of
from nmt.training.schedule import learning_rate

SMALL, CAPTIONS, LARGE = Text(2_000, 33_000), Text(29_000, 460_000), Text(900_000, 60_000_000)
HUGE = Text(4_500_000, 130_000_000)


def machine(gigaflops: float) -> Callable[[Shape, int], float]:
    """Return the speed of a machine whose steps take time in proportion to weights and tokens."""

    def speed(shape: Shape, batch_tokens: int) -> float:
        weights = 28 * shape.layers * shape.d_model**2 + 8000 * shape.d_model
        return 6 * weights * batch_tokens / (1e9 * gigaflops)

    return speed


def given(shape: Shape | None = None, **training: int) -> dict[str, int]:
    """Return settings that are not derived."""
    settings = {f"training.{name}": value for name, value in training.items()}
    return settings if shape is None else {**dict(zip(SHAPE, shape, strict=True)), **settings}


def planned(steps: int, passes: float, step_seconds: float = 1.0) -> Plan:
    """Return a plan without BPE-dropout."""
    return Plan(NARROW, 1024, steps, passes, step_seconds, most_steps=steps, bpe_dropout=0.0)


@pytest.mark.parametrize("text", [SMALL, CAPTIONS, LARGE, HUGE])
@pytest.mark.parametrize("minutes", [0.1, 5, 60, 600])
@pytest.mark.parametrize("gigaflops", [5, 100, 1000, 100_000])
def test_steps_fit_into_the_minutes_and_repeat_no_text_too_often(text: Text, minutes: float, gigaflops: float) -> None:
    speed = machine(gigaflops)
    chosen = plan(text, minutes, speed)
    seconds = chosen.steps * speed(chosen.shape, chosen.batch_tokens)
    assert seconds <= 60 * minutes or chosen.steps == 10
    assert chosen.steps * chosen.batch_tokens / text.tokens <= 80.03 or chosen.steps == 10
    assert chosen.batch_tokens in (1024, 2048, 4096, 8192)
    used = seconds / (60 * minutes)
    assert used > 0.7 or chosen.passes > 27 or chosen.steps <= 20  # the time or the text is used up


def test_a_run_that_time_ends_may_make_all_steps_that_its_text_is_worth() -> None:
    """30 passes of 449 batches; all else is that of the planned steps."""
    chosen = plan(CAPTIONS, 2, machine(20), given(batch_tokens=1024))
    planned, by_time = settings_of(chosen), settings_of(chosen, ends_by_time=True)
    assert planned["training.steps"] == chosen.steps < 13_470
    assert by_time == {**planned, "training.steps": 13_470}


def test_the_shape_grows_with_the_text_and_the_machine() -> None:
    assert plan(CAPTIONS, 5, machine(5)).shape == SHALLOW
    assert plan(CAPTIONS, 5, machine(150)).shape == plan(CAPTIONS, 50, machine(20)).shape == NARROW
    assert plan(Text(200, 3_300), 5, machine(20)).shape == NARROW  # the text is shorter than the time
    assert plan(CAPTIONS, 5, machine(2000)).shape == plan(CAPTIONS, 500, machine(20)).shape == WIDE
    gpu = machine(300_000)
    assert plan(HUGE, 60, gpu).shape == BASE
    assert plan(Text(999_999, HUGE.tokens), 60, gpu).shape == plan(HUGE, 60, machine(1000)).shape == WIDE


@pytest.mark.parametrize("shape", [None, BASE])
def test_memory_that_is_too_small_for_every_step_is_an_error(shape: Shape | None) -> None:
    width = (shape or NARROW).d_model
    with pytest.raises(CommonError, match=f"1,024 tokens with model.d_model={width} .*: free memory, lower"):
        plan(CAPTIONS, 60, lambda *_: math.inf, given(shape))


@pytest.mark.parametrize(
    ("seconds", "batch", "steps"),
    [
        ({1024: 1.0}, 1024, 3240),  # 90% of an hour
        ({1024: 1.5, 2048: 2.7}, 2048, 1200),
        ({1024: 1.5, 2048: 2.71}, 1024, 2160),  # 1,195 steps of larger batches
        ({1024: 0.2, 2048: 0.25, 4096: 0.4, 8192: 0.75}, 8192, 4320),
        ({1024: 0.2, 2048: 0.38, 4096: 0.73, 8192: 1.0}, 2048, 8520),  # 1.04 times as many tokens per second
        ({1024: 0.2, 2048: 0.38, 4096: 0.72}, 4096, 4500),  # 1.06 times
    ],
)
def test_batches_grow_while_they_leave_enough_steps(seconds: dict[int, float], batch: int, steps: int) -> None:
    chosen = plan(LARGE, 60, lambda _, batch_tokens: seconds.get(batch_tokens, 1000.0))
    assert (chosen.batch_tokens, chosen.steps, chosen.step_seconds) == (batch, steps, seconds[batch])
    assert chosen.minutes_of(steps) == pytest.approx(60, rel=0.01)


def test_the_text_decides_if_no_minutes_are_given() -> None:
    assert plan(SMALL, 0, machine(200)).passes == pytest.approx(80, abs=1)
    assert plan(Text(5_000, 80_000), 0, machine(200)).steps == 3000
    assert plan(CAPTIONS, 0, machine(1000)).passes == pytest.approx(30, abs=1)
    slow = plan(LARGE, 0, machine(200))
    assert slow.steps * slow.step_seconds <= 3600


def test_given_values_are_taken_and_the_longest_sentence_fits_into_a_batch() -> None:
    def unmeasured(shape: Shape, batch_tokens: int) -> float:
        raise AssertionError("measured without need")

    assert plan(CAPTIONS, 5, unmeasured, given(steps=777)).steps == 777
    shape = Shape(1, 32, 64, 2)
    chosen = plan(LARGE, 60, machine(10_000), given(shape, batch_tokens=500))
    assert (chosen.shape, chosen.batch_tokens) == (shape, 500)
    assert plan(CAPTIONS, 5, machine(100), longest_sentence=3001).batch_tokens == 4096


@pytest.mark.parametrize(
    ("passes", "bpe_dropout", "dropout"),
    [(0.1, 0, 0.1), (math.sqrt(6 * 17), 0, 0.15), (20, 0, 0.2), (20, 0.1, 0.2), (50, 0, 0.3), (50, 0.1, 0.2)],
)
def test_dropout_grows_with_the_passes_as_in_the_tables(passes: float, bpe_dropout: float, dropout: float) -> None:
    chosen = planned(2000, passes)._replace(bpe_dropout=bpe_dropout)
    assert settings_of(chosen)["model.dropout"] == pytest.approx(dropout)


@pytest.mark.parametrize(
    ("steps", "batch_tokens", "share"), [(1700, 8192, 0.1), (1690, 8192, 0.0), (7680, 1024, 0.1), (7600, 1024, 0.0)]
)
def test_long_runs_of_many_passes_have_bpe_dropout(steps: int, batch_tokens: int, share: float) -> None:
    """17 passes over the captions are 955 steps of 8,192 tokens, and 7,637 of 1,024."""
    settings = given(steps=steps, batch_tokens=batch_tokens)
    values = settings_of(plan(CAPTIONS, 5, machine(1), settings), settings)
    assert values[BPE_DROPOUT_SETTING] == share


@pytest.mark.parametrize(
    ("minutes", "share", "steps", "seconds"),
    [
        (60, None, 2700, 1.2),
        (60, 0.0, 3240, 1.0),
        (60, 0.3, 2700, 1.2),
        (43, None, 1930, 1.2),  # 17.2 passes
        (42, None, 2260, 1.0),  # 1,890 steps with BPE-dropout would be 16.8 passes
        (42, 0.3, 1890, 1.2),
    ],
)
def test_bpe_dropout_makes_steps_longer_than_those_that_were_measured(
    minutes: float, share: float | None, steps: int, seconds: float
) -> None:
    settings = {**given(NARROW, batch_tokens=4096), **({} if share is None else {BPE_DROPOUT_SETTING: share})}
    chosen = plan(CAPTIONS, minutes, lambda *_: 1.0, settings)
    assert (chosen.steps, chosen.step_seconds) == (steps, seconds)
    assert chosen.bpe_dropout == (share if share is not None else 0.1 if seconds > 1 else 0.0)
    assert (BPE_DROPOUT_SETTING in settings_of(chosen, settings)) is (share is None)


@pytest.mark.parametrize(
    ("passes", "steps", "decay"),
    [
        (1, 400, 0.32),
        (6.3, 860, 1.0),
        (6.3, 2500, 0.34),
        (17, 510, 2.0),
        (40, 3000, 1.0),
        (math.sqrt(2.5 * 6.3), 1000, 0.49),
    ],
)
def test_weight_decay_grows_with_the_passes_and_falls_with_the_steps(passes: float, steps: int, decay: float) -> None:
    assert settings_of(planned(steps, passes))["training.weight_decay"] == decay


@pytest.mark.parametrize(("steps", "rate"), [(10, 0.012), (1066, 0.012), (1400, 0.01), (2400, 0.008), (20_000, 0.008)])
def test_short_runs_learn_at_a_higher_rate(steps: int, rate: float) -> None:
    assert settings_of(planned(steps, 6.0))["training.learning_rate"] == rate


@pytest.mark.parametrize(("steps", "rate"), [(1, 1.2e-2), (10, 1.2e-2), (36, 1.2e-2), (20_000, 8e-3)])
def test_settings_of_a_plan_are_valid_and_its_rate_ends_at_zero(steps: int, rate: float) -> None:
    values = settings_of(planned(steps, 12.0, 0.1))
    assert {*OF_DATA, *values} == {*DERIVED}
    training: TrainingConfig = with_values(compose(["experiment=own"]), values).training
    assert learning_rate(steps, training, 128) == pytest.approx(0, abs=1e-12) or steps == 1
    assert learning_rate(training.warmup_steps, training, 128) == pytest.approx(rate)
    assert 1 <= training.steps / training.valid_every <= 10
    assert training.save_every <= training.valid_every
