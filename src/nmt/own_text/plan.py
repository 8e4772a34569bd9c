"""Plan a run from its text and the minutes there are: steps, dropout, batch, warmup, validations and shape.

The numbers come from the tables of docs/results.md: more steps are worth more than anything else, so the model is wide
only if it gets enough of them; the rate ends at zero; and dropout and weight decay follow the passes over the text.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nmt.data.store import Pairs
from nmt.errors import CommonError
from nmt.training.schedule import WARMUP_SHARE

BATCH_TOKENS = 1024
"""The smallest batch, which makes the most steps in the minutes there are."""
MAX_BATCH_TOKENS = 8192
FEW_PASSES = 10
"""Passes over the text up to which reading more of it is worth as much as new text."""
MIN_STEPS_OF_FEW_PASSES, MIN_STEPS_OF_MANY_PASSES = 1200, 1700
"""Steps that larger batches must leave: with as many, more text in the same minutes is worth more than more steps."""
MIN_GAIN = 1.05
"""How many times as much text in the same minutes a larger batch must read; else more steps are worth more."""
MIN_STEPS = 2000
"""Steps that a wide model must get, in no more than MAX_PASSES; a narrower one learns more from fewer, or from a short
text."""
SHORTEST_RUN = 3000
"""Steps of the smallest batch that short texts are repeated for, at most MAX_PASSES_OF_SHORT_TEXT times."""
MAX_PASSES, USUAL_PASSES, MAX_PASSES_OF_SHORT_TEXT = 30, 14, 80
"""Passes over the text: the most that are worth it, those without a given number of minutes, and the most at all."""
USUAL_MINUTES = 60.0
"""The most minutes of a run for which none are given."""
MIN_USEFUL_STEPS, USEFUL_STEPS = 300, 600
"""Fewer steps than the first hardly teach to translate; the second do. On 20,000 pairs, a model of width 128 has 4 BLEU
(Multi30k) and 2 (Tatoeba) after 150 steps, 21 and 11 after 300, and 32 and 21 after 600."""
SHARE_OF_STEPS = 0.9
"""The share of the minutes that is planned: steps on new shapes of batches are slower than those that were measured."""
Table = Sequence[tuple[float, float]]
"""Passes over the text with what suited them; between them it follows the logarithm of the passes."""
DROPOUT: Table = ((6, 0.1), (17, 0.2), (30, 0.2), (40, 0.3))
MAX_DROPOUT_OF_REGULARISED_RUN = 0.2
"""With BPE-dropout, 80 passes over a short text give a higher BLEU with this than with more."""
DECAY: Table = ((2.5, 126), (6.3, 860), (17, 2000), (25, 3000))
"""The weight decay times the steps: the longer a run is, the less decays in each step."""
MAX_WEIGHT_DECAY = 2.0
"""The largest weight decay that was tried with success."""
MAX_WARMUP_STEPS = 300
VALIDATIONS, SAVES = (4, 10), 25
"""The fewest and the most validations, between which there is one per two minutes; and the checkpoints of a run."""


class Shape(NamedTuple):
    """The shape of a model with as many decoder layers as encoder layers."""

    layers: int
    d_model: int
    d_ff: int
    heads: int


BASE, WIDE, NARROW = Shape(6, 512, 2048, 8), Shape(3, 256, 1024, 4), Shape(3, 128, 512, 4)
"""Shapes to choose from: the paper's base, and two smaller ones."""
PAIRS_OF_BASE, TOKENS_OF_BASE = 1_000_000, 100_000_000
"""Pairs of a text that base is worth its time for, and tokens per side that it must read in that time. They are not
measured, but chosen with a margin from the paper, in which 4.5 million pairs are enough for base."""


class Text(NamedTuple):
    """The prepared training text."""

    pairs: int
    tokens: int
    """Tokens of the longer side, with an end mark per sentence."""

    @classmethod
    def of(cls, pairs: Pairs) -> "Text":
        """Return what is known of the training text, which may be that of several corpora."""
        return cls(len(pairs), max(int(pairs.source_lengths.sum()), int(pairs.target_lengths.sum())) + len(pairs))

    def steps_per_pass(self, batch_tokens: int) -> float:
        """Return the steps that a pass over the text takes."""
        return max(1.0, self.tokens / batch_tokens)


class Given(NamedTuple):
    """What is not derived; None for what is."""

    shape: Shape | None = None
    batch_tokens: int | None = None
    steps: int | None = None
    smallest_batch: int = BATCH_TOKENS
    """Tokens of the longest sentence that must fit into a batch."""


NOTHING = Given()


class Plan(NamedTuple):
    """A planned run."""

    shape: Shape
    batch_tokens: int
    steps: int
    passes: float
    step_seconds: float
    """0 if nothing was measured."""
    most_steps: int
    """Steps that the text is worth, for a run that makes more than the planned ones in its minutes."""

    @property
    def minutes(self) -> float:
        """About how many minutes the steps take; 0 if nothing was measured."""
        return self.minutes_of(self.steps)

    def minutes_of(self, steps: int) -> float:
        """Return about how many minutes some steps take; 0 if nothing was measured."""
        return steps * self.step_seconds / SHARE_OF_STEPS / 60


Speed = Callable[[Shape, int], float]
"""Returns the seconds of a step of a shape with batches of this many tokens; infinite if the memory is too small."""


def plan(text: Text, minutes: float, speed: Speed, given: Given = NOTHING) -> Plan:
    """Return the best run within the minutes; 0 minutes let the text decide.

    Args:
        text: The training text.
        minutes: Minutes of training steps.
        speed: What a step takes on this machine.
        given: What the user chooses.

    Raises:
        CommonError: The memory is too small for a step.
    """
    speed = cache(speed)
    batch = given.batch_tokens or _power_of_two(max(BATCH_TOKENS, given.smallest_batch))
    if given.steps:
        return Plan(given.shape or WIDE, batch, given.steps, given.steps / text.steps_per_pass(batch), 0.0, given.steps)
    shape = given.shape or _largest_shape(text, batch, minutes, speed, given.batch_tokens)
    seconds = speed(shape, batch)
    if math.isinf(seconds):  # also of the narrowest shape, unless another one is given
        raise CommonError(
            f"own.derive: the memory is too small for a training step of {batch:,} tokens with model.d_model="
            f"{shape.d_model} and model.layers={shape.layers}: free memory, lower data.max_pieces or "
            "tokenizer.vocab_size and prepare the text again, or give smaller values of model.*"
        )
    if given.batch_tokens is None:
        batch, seconds = _largest_batch(shape, text, batch, minutes, seconds, speed)
    steps = _rounded(_steps(text, batch, minutes, seconds))
    most_steps = _rounded(_worth(text, batch, minutes))
    return Plan(shape, batch, steps, steps / text.steps_per_pass(batch), seconds, most_steps)


def _largest_shape(text: Text, batch: int, minutes: float, speed: Speed, given_batch: int | None) -> Shape:
    """Return the largest shape that learns enough from the text in the minutes."""
    largest_batch = given_batch or max(batch, MAX_BATCH_TOKENS)
    if text.pairs >= PAIRS_OF_BASE and _suits_base(text, batch, largest_batch, minutes, speed):
        return BASE
    if MAX_PASSES * text.steps_per_pass(batch) < MIN_STEPS:
        return NARROW
    return WIDE if _steps(text, batch, minutes, speed(WIDE, batch)) >= MIN_STEPS else NARROW


def _suits_base(text: Text, batch: int, largest_batch: int, minutes: float, speed: Speed) -> bool:
    """Return whether base reads enough. Small batches tell first, because large ones take long."""

    def tokens(batch_tokens: int) -> float:
        return batch_tokens * _steps(text, batch_tokens, minutes, speed(BASE, batch_tokens))

    return tokens(batch) >= TOKENS_OF_BASE * batch / largest_batch and tokens(largest_batch) >= TOKENS_OF_BASE


def _largest_batch(
    shape: Shape, text: Text, batch: int, minutes: float, seconds: float, speed: Speed
) -> tuple[int, float]:
    """Return the largest batch that reads more and leaves enough steps, and the seconds of its steps.

    Args:
        shape: The shape of the model.
        text: The training text.
        batch: Tokens of the smallest batch.
        minutes: Minutes of training steps.
        seconds: Seconds of a step of the smallest batch.
        speed: What a step takes on this machine.
    """
    while batch < MAX_BATCH_TOKENS and _steps(text, batch, minutes, seconds) > MIN_STEPS_OF_FEW_PASSES:
        larger = speed(shape, 2 * batch)
        if 2 * seconds < MIN_GAIN * larger:
            break
        steps = _steps(text, 2 * batch, minutes, larger)
        has_few_passes = steps / text.steps_per_pass(2 * batch) <= FEW_PASSES
        if steps < (MIN_STEPS_OF_FEW_PASSES if has_few_passes else MIN_STEPS_OF_MANY_PASSES):
            break
        batch, seconds = 2 * batch, larger
    return batch, seconds


def _affordable(minutes: float, seconds: float) -> float:
    return SHARE_OF_STEPS * 60 * (minutes or USUAL_MINUTES) / seconds


def _steps(text: Text, batch: int, minutes: float, seconds: float) -> float:
    """Return the steps that the text is worth, or those that there is time for."""
    return min(_worth(text, batch, minutes), _affordable(minutes, seconds))


def _worth(text: Text, batch: int, minutes: float) -> float:
    """Return the steps that the text is worth."""
    passes_of_short_text = min(SHORTEST_RUN / text.steps_per_pass(BATCH_TOKENS), MAX_PASSES_OF_SHORT_TEXT)
    passes = max(MAX_PASSES if minutes else USUAL_PASSES, passes_of_short_text)
    return passes * text.steps_per_pass(batch)


def _rounded(steps: float) -> int:
    """Return a whole number of tens of steps, at least ten."""
    return max(10, 10 * math.floor(steps / 10))


def _power_of_two(tokens: int) -> int:
    return 1 << (tokens - 1).bit_length()


def dropout_for(passes: float, *, regularised: bool = False) -> float:
    """Return the dropout for a number of passes over the text, with two decimals; features may regularise as well."""
    dropout = round(_suited(DROPOUT, passes), 2)
    return min(dropout, MAX_DROPOUT_OF_REGULARISED_RUN) if regularised else dropout


def weight_decay_for(passes: float, steps: int) -> float:
    """Return the weight decay for a number of passes over the text that take some steps, with two digits."""
    return min(MAX_WEIGHT_DECAY, float(f"{_suited(DECAY, passes) / steps:.2g}"))


def _suited(table: Table, passes: float) -> float:
    """Return the value of a table for a number of passes."""
    known, values = zip(*table, strict=True)
    return float(np.interp(math.log(passes), np.log(known), values))


def settings_of(chosen: Plan, *, regularised: bool = False, ends_by_time: bool = False) -> Mapping[str, object]:
    """Return the values of all settings that a plan decides.

    Args:
        chosen: The plan.
        regularised: Whether features regularise the run as well.
        ends_by_time: Whether the minutes end the run, so that it may make more steps than planned.
    """
    steps, shape = chosen.steps, chosen.shape
    validations = min(max(VALIDATIONS[0], round(chosen.minutes / 2)), VALIDATIONS[1])
    return {
        **{f"model.{name}": value for name, value in shape._asdict().items()},
        "model.dropout": dropout_for(chosen.passes, regularised=regularised),
        "training.batch_tokens": chosen.batch_tokens,
        "training.schedule": "linear",
        "training.steps": chosen.most_steps if ends_by_time else steps,
        "training.weight_decay": weight_decay_for(chosen.passes, steps),
        "training.warmup_steps": max(1, min(MAX_WARMUP_STEPS, round(WARMUP_SHARE * steps))),
        "training.valid_every": math.ceil(steps / validations),
        "training.save_every": math.ceil(steps / SAVES),
        "training.patience": 0,
    }
