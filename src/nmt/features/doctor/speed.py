"""Time training steps and beam search of the paper's models with random weights, and measure their memory."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

import torch

from nmt.compute.machine import HALF_PRECISIONS, Machine, device_name, prepare_machine
from nmt.config.schema import Config, ModelConfig
from nmt.data.loader import GlobalBatch
from nmt.data.store import PairStore
from nmt.data.synthetic import MAX_LENGTH, synthetic_pairs
from nmt.decoding.beam import beam_search
from nmt.estimate.hardware import Device
from nmt.estimate.measured import MeasuredStep
from nmt.estimate.memory import activation_storage, training_memory
from nmt.estimate.operation import Part
from nmt.estimate.operations import Batch
from nmt.estimate.parameters import ParameterCounts, count_parameters, training_flops
from nmt.estimate.step_time import step_seconds
from nmt.features.doctor.parts import part_seconds
from nmt.measuring.steps import free_memory, measured_batches, peak_memory, wait
from nmt.model.build import build_model
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.model.working_weights import in_precision
from nmt.text.special import EOS
from nmt.training.graph_shapes import RECORDED_AT
from nmt.training.memory_check import tokens_that_fit
from nmt.training.new_trainer import new_trainer
from nmt.training.trainer import Trainer

SHAPES = {
    "tiny": ModelConfig(layers=2, d_model=128, d_ff=512, heads=2),
    "small": ModelConfig(layers=3, d_model=256, d_ff=1024, heads=4),
    "base": ModelConfig(),
    "big": ModelConfig(d_model=1024, d_ff=4096, heads=16, dropout=0.3),
}
WORDS, PAIRS = 37_000, 50_000
"""Word pieces of the vocabulary, and sentence pairs of the text."""
WARMUP_STEPS, DIFFERENT_BATCHES = 3, 8
DECODED_SENTENCES = {"cuda": 128, "cpu": 8}
"""Sentences that are decoded simultaneously."""


@dataclass(frozen=True, slots=True)
class TrainingSpeed:
    """The speed and memory of training a model."""

    name: str
    compiled: bool
    micro_batches: int
    """Per step."""
    milliseconds: float
    """Per step."""
    tokens_per_second: float
    """Source and target tokens."""
    share_of_peak: float
    """FLOPs of the model per second, divided by the peak of the device."""
    memory: int
    """Peak in bytes; on a CPU that of the whole process so far."""
    estimated_memory: int
    """By the formula of `nmt describe`."""
    ratios: dict[Part, float]
    """Measured seconds of each part of the step, divided by the estimated ones."""


@dataclass(frozen=True, slots=True)
class DecodingSpeed:
    """The speed of beam search."""

    name: str
    sentences: int
    tokens_per_second: float
    """Tokens of the best hypotheses."""


def run_settings(model: str, config: Config, *, compiled: bool | None = None) -> Config:
    """Return the settings of a run that trains a model on one device as the user's settings say."""
    return replace(config, model=SHAPES[model], runtime=replace(config.runtime, compile=compiled, parallel=1))


def training_speed(model: str, config: Config, sheet: Device, steps: int) -> tuple[TrainingSpeed, MeasuredStep]:
    """Train a model for a few steps on sentences as long as those of WMT14, with unequal lengths of both sides."""
    machine = prepare_machine(config.runtime)
    text = training_text()
    trainer = fitting_trainer(config, machine, text)
    few = list(islice(measured_batches(trainer, text), min(steps, DIFFERENT_BATCHES)))
    warm_up(trainer, few)
    timed = list(islice(cycle(few), steps))
    seconds = timed_steps(trainer, timed)
    size = count_parameters(config.model, WORDS, WORDS)
    measured = MeasuredStep(
        device_name(machine.device),
        model,
        size.total,
        machine.precision_name,
        bool(config.runtime.compile),
        _part_seconds(trainer, few, seconds / steps),
        _estimated_seconds(config, size, machine, timed, sheet),
    )
    tokens, targets = sum(batch.tokens for batch in timed), sum(batch.target_tokens for batch in timed)
    flops = training_flops(config.model, size, WORDS * config.model.d_model, tokens - targets, targets)
    speed = TrainingSpeed(
        model,
        bool(config.runtime.compile),
        max(len(batch.micro_batches) for batch in timed),
        1000 * seconds / len(timed),
        tokens / seconds,
        flops / seconds / sheet.peak(machine.precision_name),
        peak_memory(machine.device),
        _estimated_memory(config, size, machine, timed),
        measured.ratios,
    )
    return speed, measured


def warm_up(trainer: Trainer, batches: Sequence[GlobalBatch]) -> None:
    """Train on each batch until the trainer is as fast as it will be: a GPU records passes that it meets often."""
    rounds = RECORDED_AT + 1 if trainer.gradient.passes is not None else 1
    for batch in islice(cycle(batches), max(rounds * len(batches), WARMUP_STEPS)):
        trainer.update(batch)


def _part_seconds(trainer: Trainer, batches: Sequence[GlobalBatch], seconds: float) -> dict[Part, float]:
    """Return the mean seconds per step of each part.

    Parts of recorded passes cannot be timed, so the passes run without graphs, and the parts are scaled such that they
    add up to the `seconds` of a step.
    """
    passes, trainer.gradient.passes = trainer.gradient.passes, None
    parts = part_seconds(trainer, batches)
    trainer.gradient.passes = passes
    if passes is None:
        return parts
    return {part: each * seconds / sum(parts.values()) for part, each in parts.items()}


def training_text() -> PairStore:
    """Return random words in sentences as long as those of WMT14."""
    return synthetic_pairs(WORDS, WORDS, pairs=PAIRS)


def fitting_trainer(config: Config, machine: Machine, text: PairStore) -> Trainer:
    """Return a trainer whose micro-batches fit in memory, as those of a run do; all processes must call this."""
    free_memory()
    trainer = new_trainer(config, machine, WORDS, WORDS)
    tokens = tokens_that_fit(trainer, text, MAX_LENGTH + 1)
    trainer.config = replace(trainer.config, device_tokens=tokens)
    free_memory()
    if machine.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(machine.device)
    return trainer


def timed_steps(trainer: Trainer, batches: Sequence[GlobalBatch]) -> float:
    """Train on each batch, and return the seconds that this took."""
    wait(trainer.machine.device)
    started = time.perf_counter()
    for batch in batches:
        trainer.update(batch)
    wait(trainer.machine.device)
    return time.perf_counter() - started


def _estimated_seconds(
    config: Config, size: ParameterCounts, machine: Machine, batches: Sequence[GlobalBatch], sheet: Device
) -> dict[Part, float]:
    """Return the mean seconds per step of each part by the formula of `nmt describe`."""
    targets = sum(batch.target_tokens for batch in batches)
    sources = sum(batch.tokens for batch in batches) - targets
    micro_batches = [each for batch in batches for each in batch.micro_batches]
    count, sentences = len(micro_batches), sum(len(each.target.lengths) for each in micro_batches)
    batch = Batch(sources // count, targets // count, -(-targets // sentences), machine.precision_name, sheet.fused)
    per_step = round(count / len(batches))
    return step_seconds(config.model, config.training, size, (WORDS, WORDS), batch, sheet, per_step)


def _estimated_memory(config: Config, size: ParameterCounts, machine: Machine, batches: Sequence[GlobalBatch]) -> int:
    micro_batches = [each for batch in batches for each in batch.micro_batches]
    source = max(len(each.source.tokens) for each in micro_batches)
    target = max(len(each.target.tokens) for each in micro_batches)
    length = max(max(each.source.longest, each.target.longest) for each in micro_batches)
    on = activation_storage(gpu=machine.device.type != "cpu", half=machine.precision in HALF_PRECISIONS)
    return training_memory(config.model, size.total, WORDS, source, target, length, on).total


def decoding_speed(name: str, machine: Machine) -> DecodingSpeed:
    """Translate random sentences by a model with random weights, with the paper's beam of 4.

    Such a model rarely ends a sentence, so every translation has nearly the length of its source and 50 tokens more:
    the tokens are as fast as those of a trained model, the sentences are not.
    """
    sentences = DECODED_SENTENCES[machine.device.type]
    model = _decoder(SHAPES[name], machine)
    text = synthetic_pairs(WORDS, WORDS, pairs=sentences)
    source = Packed.from_sentences([[*map(int, text.source(index)), EOS] for index in range(sentences)])
    source = source.to(machine.device)
    limits = source.lengths.to(torch.int64) + 50
    seconds, tokens = 0.0, 0
    with torch.no_grad():
        for _ in range(2):  # the first time warms up
            wait(machine.device)
            started = time.perf_counter()
            state = model.start(source)
            found = beam_search(
                lambda last, parents, state=state: model.advance(last, parents, state),  # type: ignore[misc]
                limits,
                beam=4,
                alpha=0.6,
            )
            wait(machine.device)
            seconds, tokens = time.perf_counter() - started, sum(len(best.tokens) for best, *_ in found)
    return DecodingSpeed(name, sentences, tokens / seconds)


def _decoder(config: ModelConfig, machine: Machine) -> TranslationModel:
    torch.manual_seed(1)
    model = build_model(config, WORDS, WORDS).to(machine.device).eval()
    if machine.device.type == "cpu":
        return prepare_for_cpu(model, machine.precision)
    return in_precision(model, machine.precision)
