"""Plan a run from its text, the minutes there are and the speed of this machine; docs/results.md has the measurements.

What is chosen, how, and why:

=====================  ================================================================================================
steps                  as many as 90% of the minutes (or of an hour) allow, in up to 30 passes over the text; of a short
                       text up to 3,000 of the smallest batch, in up to 80 passes. Steps on new shapes of batches are
                       slower than those that were measured.
base                   a text of 1M pairs, of which it reads 100M tokens per side. This is not measured, but chosen with
                       a margin from the paper, in which 4.5M pairs are enough.
width 256, else 128    4,000 steps in up to 30 passes: a narrower model learns more from fewer, or from a short text. In
                       ten minutes of two cores, width 256 is no better.
3 + 3 layers, else     2,500 steps of width 128, or all that the text is worth. In three minutes 2 + 2 layers make 1.4
2 + 2                  times as many steps, and on three texts of four up to 3 BLEU more; in ten of one thread none.
batch                  1,024 tokens, doubled while that reads 5% more text per minute and leaves enough steps: 1,200 for
                       up to 10 passes, in which text is as good as new, else 1,700.
dropout                0.1 for up to 6 passes, 0.2 from 17 and 0.3 from 40 passes on.
BPE-dropout            0.1 (Provilkov et al., 2020) if there is time for 17 passes and 1,700 steps of it, which take
                       1.2 times as long: as good then as more steps without it, and better in more passes, also than
                       dropout above 0.2. In 14 passes it loses.
weight decay           by the passes, divided by the steps: the longer a run is, the less decays in each step. More than
                       2 was not tried.
learning rate          of Muon: 8e-3 from 2,400 steps on, and up to half as much again in shorter runs.
schedule               linear, to zero, after a warmup of 12% of the steps, at most 300.
validations            one per two minutes, 4 to 10; 25 checkpoints.
warning                below 300 steps; 600 would do. On 20,000 pairs, width 128 has 4 BLEU (Multi30k) and 2 (Tatoeba)
                       after 150 steps, 21 and 11 after 300, and 32 and 21 after 600.
=====================  ================================================================================================
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nmt.config.commands import SHAPE
from nmt.errors import CommonError
from nmt.training.schedule import WARMUP_SHARE

SHARE_OF_MINUTES, USUAL_MINUTES = 0.9, 60.0
MAX_PASSES = 30
SHORTEST_RUN, MAX_PASSES_OF_SHORT_TEXT = 3000, 80
PAIRS_OF_BASE, TOKENS_OF_BASE = 1_000_000, 100_000_000
STEPS_OF_WIDE, STEPS_OF_NARROW = 4000, 2500
MIN_BATCH_TOKENS, MAX_BATCH_TOKENS, MIN_GAIN = 1024, 8192, 1.05
FEW_PASSES, STEPS_OF_FEW_PASSES, STEPS_OF_MANY_PASSES = 10, 1200, 1700
Table = Sequence[tuple[float, float]]
"""Passes over the text and what suits them; between them it follows the logarithm of the passes."""
DROPOUT: Table = ((6, 0.1), (17, 0.2), (30, 0.2), (40, 0.3))
DECAY_TIMES_STEPS: Table = ((2.5, 126), (6.3, 860), (17, 2000), (25, 3000))
BPE_DROPOUT, MIN_PASSES_OF_BPE_DROPOUT, MAX_DROPOUT_WITH_BPE_DROPOUT, STEPS_ARE_LONGER = 0.1, 17, 0.2, 1.2
MAX_WEIGHT_DECAY, MAX_WARMUP_STEPS = 2.0, 300
RATE, STEPS_OF_RATE, MAX_RATE_FACTOR = 8e-3, 2400, 1.5
MIN_VALIDATIONS, MAX_VALIDATIONS, CHECKPOINTS = 4, 10, 25

BATCH = "training.batch_tokens"
LEARNING_RATE = "training.learning_rate"
BPE_DROPOUT_SETTING = "noise.bpe_dropout"
Values = Mapping[str, Any]
"""Settings by name."""
NOTHING: Values = MappingProxyType({})


class Shape(NamedTuple):
    """The shape of a model with as many decoder layers as encoder layers."""

    layers: int
    d_model: int
    d_ff: int
    heads: int


BASE, WIDE = Shape(6, 512, 2048, 8), Shape(3, 256, 1024, 4)
NARROW, SHALLOW = Shape(3, 128, 512, 4), Shape(2, 128, 512, 4)
Speed = Callable[[Shape, int], float]
"""Returns the seconds of a step of a shape with batches of this many tokens; infinite if the memory is too small."""


class Text(NamedTuple):
    """The prepared training text."""

    pairs: int
    tokens: int
    """Tokens of the longer side, with an end mark per sentence."""

    def steps_per_pass(self, batch_tokens: int) -> float:
        """Return the steps that a pass over the text takes."""
        return max(1.0, self.tokens / batch_tokens)


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
    bpe_dropout: float
    """The share of merges that BPE-dropout leaves out."""

    def minutes_of(self, steps: int) -> float:
        """Return about how many minutes some steps take; 0 if nothing was measured."""
        return steps * self.step_seconds / SHARE_OF_MINUTES / 60


def plan(text: Text, minutes: float, speed: Speed, given: Values = NOTHING, longest_sentence: int = 1) -> Plan:
    """Return the best run within the minutes of training steps; with 0 minutes the text decides.

    `given` are the settings that are not derived. A batch must hold `longest_sentence` tokens.

    Raises:
        CommonError: The memory is too small for a step.
    """
    shape = Shape(*(given[name] for name in SHAPE)) if SHAPE[0] in given else None
    batch: int = given.get(BATCH) or 1 << (max(MIN_BATCH_TOKENS, longest_sentence) - 1).bit_length()
    if steps := given.get("training.steps"):
        passes = steps / text.steps_per_pass(batch)
        return Plan(shape or WIDE, batch, steps, passes, 0.0, steps, _bpe_dropout(steps, passes, given))
    speed = cache(speed)
    short = min(SHORTEST_RUN / text.steps_per_pass(MIN_BATCH_TOKENS), MAX_PASSES_OF_SHORT_TEXT)
    most_passes = max(MAX_PASSES, short)
    seconds = SHARE_OF_MINUTES * 60 * (minutes or USUAL_MINUTES)

    def worth(batch: int) -> float:
        """Return the steps that the text is worth."""
        return most_passes * text.steps_per_pass(batch)

    def bpe_dropout(shape: Shape, batch: int) -> float:
        """Return the share of merges to leave out: none if the run, whose steps it makes longer, would be too short."""
        steps = min(worth(batch), seconds / (STEPS_ARE_LONGER * speed(shape, batch)))
        return _bpe_dropout(steps, steps / text.steps_per_pass(batch), given)

    def seconds_of(shape: Shape, batch: int) -> float:
        """Return the seconds of a step; those that were measured lack BPE-dropout."""
        return speed(shape, batch) * (STEPS_ARE_LONGER if bpe_dropout(shape, batch) else 1.0)

    def steps_of(shape: Shape, batch: int) -> float:
        """Return the steps that the text is worth, or those that there is time for."""
        return min(worth(batch), seconds / seconds_of(shape, batch))

    if shape is None:
        largest = given.get(BATCH) or max(batch, MAX_BATCH_TOKENS)
        shape = _largest_shape(text, steps_of, batch, largest, worth(batch))
    if math.isinf(speed(shape, batch)):  # also of the narrowest shape, unless another one is given
        raise CommonError(
            f"own.derive: the memory is too small for a training step of {batch:,} tokens with model.d_model="
            f"{shape.d_model} and model.layers={shape.layers}: free memory, lower data.max_pieces or "
            "tokenizer.vocab_size and prepare the text again, or give smaller values of model.*"
        )
    while BATCH not in given and batch < MAX_BATCH_TOKENS and steps_of(shape, batch) > STEPS_OF_FEW_PASSES:
        larger = 2 * batch
        if 2 * speed(shape, batch) < MIN_GAIN * speed(shape, larger):
            break
        more = steps_of(shape, larger)
        has_few_passes = more / text.steps_per_pass(larger) <= FEW_PASSES
        if more < (STEPS_OF_FEW_PASSES if has_few_passes else STEPS_OF_MANY_PASSES):
            break
        batch = larger
    steps, most_steps = (max(10, 10 * math.floor(each / 10)) for each in (steps_of(shape, batch), worth(batch)))
    passes = steps / text.steps_per_pass(batch)
    return Plan(shape, batch, steps, passes, seconds_of(shape, batch), most_steps, bpe_dropout(shape, batch))


def _bpe_dropout(steps: float, passes: float, given: Values) -> float:
    """Return the share of merges that BPE-dropout leaves out."""
    is_long = passes >= MIN_PASSES_OF_BPE_DROPOUT and steps >= STEPS_OF_MANY_PASSES
    return float(given.get(BPE_DROPOUT_SETTING, BPE_DROPOUT if is_long else 0.0))


def _largest_shape(
    text: Text, steps_of: Callable[[Shape, int], float], batch: int, largest_batch: int, most_steps: float
) -> Shape:
    """Return the largest shape that learns enough from the text in the minutes.

    `steps_of` returns the steps that there is time for, at most `most_steps`, which the text is worth.
    """
    # small batches tell first, because large ones take long to measure
    if text.pairs >= PAIRS_OF_BASE and all(
        tokens * steps_of(BASE, tokens) >= TOKENS_OF_BASE * tokens / largest_batch for tokens in (batch, largest_batch)
    ):
        return BASE
    if most_steps >= STEPS_OF_WIDE and steps_of(WIDE, batch) >= STEPS_OF_WIDE:
        return WIDE
    return NARROW if steps_of(NARROW, batch) >= min(STEPS_OF_NARROW, most_steps) else SHALLOW


def settings_of(chosen: Plan, given: Values = NOTHING, *, ends_by_time: bool = False) -> dict[str, object]:
    """Return the values of all settings that follow from a plan, except for those that are given.

    If the minutes end the run (`ends_by_time`), it may make more steps than planned.
    """
    steps, passes = chosen.steps, chosen.passes
    dropout = round(_suiting(DROPOUT, passes), 2)
    decay = float(f"{_suiting(DECAY_TIMES_STEPS, passes) / steps:.2g}")
    faster = min(max(1.0, math.sqrt(STEPS_OF_RATE / steps)), MAX_RATE_FACTOR)
    validations = min(max(MIN_VALIDATIONS, round(chosen.minutes_of(steps) / 2)), MAX_VALIDATIONS)
    values = {
        **dict(zip(SHAPE, chosen.shape, strict=True)),
        "model.dropout": min(dropout, MAX_DROPOUT_WITH_BPE_DROPOUT) if chosen.bpe_dropout else dropout,
        BATCH: chosen.batch_tokens,
        "training.schedule": "linear",
        LEARNING_RATE: float(f"{RATE * faster:.2g}"),
        "training.steps": chosen.most_steps if ends_by_time else steps,
        "training.weight_decay": min(MAX_WEIGHT_DECAY, decay),
        "training.warmup_steps": max(1, min(MAX_WARMUP_STEPS, round(WARMUP_SHARE * steps))),
        "training.valid_every": math.ceil(steps / validations),
        "training.save_every": math.ceil(steps / CHECKPOINTS),
        "training.patience": 0,
        BPE_DROPOUT_SETTING: chosen.bpe_dropout,
    }
    return {name: value for name, value in values.items() if name not in given}


def _suiting(table: Table, passes: float) -> float:
    """Return the value of a table for a number of passes."""
    known, values = zip(*table, strict=True)
    return float(np.interp(math.log(passes), np.log(known), values))
