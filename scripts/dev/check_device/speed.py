"""Time training steps and beam search of the paper's models with random weights, and measure their memory."""

import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import NamedTuple

import torch

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.schema import Config, ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.loader import GlobalBatch
from nmt.data.synthetic import synthetic_pairs
from nmt.decoding.beam import beam_search
from nmt.estimate.memory import activation_storage, training_memory
from nmt.estimate.parameters import count_parameters, training_flops
from nmt.model.build import build_model
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.model.working_weights import in_precision
from nmt.text.special import EOS
from nmt.training.new_trainer import new_trainer
from nmt.training.trainer import Trainer
from shared.synthetic import peak_memory, synthetic_batches

SHAPES = {
    "tiny": ModelConfig(layers=2, d_model=128, d_ff=512, heads=2),
    "small": ModelConfig(layers=3, d_model=256, d_ff=1024, heads=4),
    "base": ModelConfig(),
    "big": ModelConfig(d_model=1024, d_ff=4096, heads=16, dropout=0.3),
}
WORDS = 37_000
WARMUP_STEPS = 3
DECODED_SENTENCES = {"cuda": 128, "cpu": 8}
"""Sentences that are decoded simultaneously."""


class TrainingSpeed(NamedTuple):
    """The speed and memory of training a model."""

    shape: str
    compiled: bool
    milliseconds: float
    """Per step."""
    tokens_per_second: float
    """Source and target tokens."""
    share_of_peak: float
    """FLOPs of the model per second, divided by those of one large matrix product in bf16."""
    memory: int
    """Peak in bytes; on a CPU that of the whole process so far."""
    estimated_memory: int
    """By the formula of `nmt describe`."""


class DecodingSpeed(NamedTuple):
    """The speed of beam search."""

    shape: str
    sentences: int
    tokens_per_second: float
    """Tokens of the best hypotheses."""


def run_settings(shape: str, device: str, batch_tokens: int, device_tokens: int) -> Config:
    """Return the settings of a run that trains a model of this shape in bf16."""
    return Config(
        model=SHAPES[shape],
        training=TrainingConfig(batch_tokens=batch_tokens, device_tokens=device_tokens),
        runtime=RuntimeConfig(device=device, precision="bf16"),
    )


def matrix_product_peak(device: torch.device) -> float:
    """Return the FLOP/s of large matrix products in bf16, the best of ten."""
    size = 8192 if device.type == "cuda" else 2048
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    best = float("inf")
    for _ in range(10):
        wait(device)
        started = time.perf_counter()
        left @ right
        wait(device)
        best = min(best, time.perf_counter() - started)
    return float(2 * size**3 / best)


def training_speed(shape: str, config: Config, peak: float, steps: int) -> TrainingSpeed:
    """Train a model for a few steps on sentences as long as those of WMT14, with unequal lengths of both sides."""
    machine = prepare_machine(config.runtime)
    device = machine.device
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    trainer = new_trainer(config, machine, WORDS, WORDS)
    batches = _batches(trainer, steps)
    for batch in islice(batches, WARMUP_STEPS):
        trainer.update(batch)
    wait(device)
    timed, started = list(islice(batches, steps)), time.perf_counter()
    for batch in timed:
        trainer.update(batch)
    wait(device)
    seconds = time.perf_counter() - started
    tokens, targets = sum(batch.tokens for batch in timed), sum(batch.target_tokens for batch in timed)
    size = count_parameters(config.model, WORDS, WORDS)
    flops = training_flops(config.model, size, WORDS * config.model.d_model, tokens - targets, targets)
    return TrainingSpeed(
        shape,
        bool(config.runtime.compile),
        1000 * seconds / steps,
        tokens / seconds,
        flops / seconds / peak,
        peak_memory(device),
        _estimated_memory(config, machine, timed),
    )


def _batches(trainer: Trainer, count: int) -> Iterator[GlobalBatch]:
    """Yield the same few global batches forever."""
    stream = synthetic_batches(trainer, synthetic_pairs(WORDS, WORDS))
    return cycle(list(islice(stream, max(count, WARMUP_STEPS))))


def _estimated_memory(config: Config, machine: Machine, batches: list[GlobalBatch]) -> int:
    micro_batches = [each for batch in batches for each in batch.micro_batches]
    source = max(len(each.source.tokens) for each in micro_batches)
    target = max(len(each.target.tokens) for each in micro_batches)
    length = max(max(each.source.longest, each.target.longest) for each in micro_batches)
    on = activation_storage(gpu=machine.device.type != "cpu", half=machine.precision != torch.float32)
    parameters = count_parameters(config.model, WORDS, WORDS).total
    return training_memory(config.model, parameters, WORDS, source, target, length, on).total


def decoding_speed(shape: str, machine: Machine) -> DecodingSpeed:
    """Translate random sentences by a model with random weights, with the paper's beam of 4.

    Such a model rarely ends a sentence, so every translation has nearly the length of its source and 50 tokens more:
    the tokens are as fast as those of a trained model, the sentences are not.
    """
    sentences = DECODED_SENTENCES[machine.device.type]
    model = _decoder(SHAPES[shape], machine)
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
    return DecodingSpeed(shape, sentences, tokens / seconds)


def _decoder(config: ModelConfig, machine: Machine) -> TranslationModel:
    torch.manual_seed(1)
    model = build_model(config, WORDS, WORDS).to(machine.device).eval()
    if machine.device.type == "cpu":
        return prepare_for_cpu(model, machine.precision)
    return in_precision(model, machine.precision)


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
