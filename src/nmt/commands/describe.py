"""`nmt describe`: estimate what a run needs and costs, before it starts."""

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch

from nmt.compute.machine import HALF_PRECISIONS, device_name, has_bf16, prepare_machine
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data.batches import Batching, PairLengths, plan_epoch
from nmt.data.corpora import training_splits
from nmt.data.layout import CorpusLayout
from nmt.data.manifest import read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.prepared import prepared_tokenizer
from nmt.data.records import TrainedTokenizer, encode_task
from nmt.errors import ConfigError, for_this_installation
from nmt.estimate.hardware import Estimate, duration, estimate, find_device, measured_peak, precision_on
from nmt.estimate.memory import Memory, Storage, micro_batches, run_memory
from nmt.estimate.parameters import ParameterCounts, count_parameters, step_flops

TREE_SYMBOLS = 100
"""Words of the target side if it is trees: a treebank has some 30 labels of phrases, and the tags."""
TYPICAL_LENGTH = 30
"""Tokens per sentence, assumed if the data is not prepared."""


class Vocabularies(NamedTuple):
    """The words of the model."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class EpochFigures:
    """One epoch of the prepared data."""

    pairs: int
    steps_per_epoch: int
    epochs: float
    """Epochs in the whole run."""
    tokens_per_step: float
    """Source and target tokens per step, on average."""
    mean_length: float
    """Target tokens per sentence, on average."""
    longest: int
    """Tokens of the longest sentence, source or target."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What a run needs."""

    vocabularies: Vocabularies
    parameters: ParameterCounts
    flops_per_step: int
    flops: int
    """Floating-point operations of all steps."""
    steps: int
    global_batch: int
    """Source tokens of a global batch, and as many target tokens."""
    devices: int
    device_batch: int
    """Source tokens of a micro-batch."""
    accumulation: int
    """Micro-batches per step on each device."""
    data: EpochFigures | None
    """None if the data is not prepared."""
    memory: Memory
    """Memory per device with sentences of average length."""
    longest_memory: int
    """Bytes per device for a micro-batch of the longest sentences."""
    estimate: Estimate
    """The time of the steps."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures as JSON objects, whose keys scripts rely on."""
        return {
            "parameters": {"total": self.parameters.total, **self.parameters._asdict()},
            "flops_per_step": self.flops_per_step,
            "flops": self.flops,
            "tokens_per_step": 2 * self.global_batch,
            "steps": self.steps,
            "global_batch": self.global_batch,
            "devices": self.devices,
            "device_batch": self.device_batch,
            "accumulation": self.accumulation,
            "data": asdict(self.data) if self.data else None,
            "memory": {"total": self.memory.total, **self.memory._asdict(), "longest_sentences": self.longest_memory},
            "estimate": self.estimate._asdict(),
        }


def run(config: Config) -> None:
    """Print the figures, as text or as JSON."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output}: describe writes to standard output only; remove output=")
    figures = describe(config, _device_count(config))
    if config.output == "json":
        print(json.dumps(figures.as_json(), indent=2))
    else:
        print(as_text(config, figures))


def describe(config: Config, devices: int) -> RunFigures:
    """Return the figures of a run on this number of devices."""
    tokenizer, batch = prepared_tokenizer(config), config.training.batch_tokens
    words = _vocabularies(config, tokenizer)
    size = count_parameters(config.model, *words)
    accumulation, device_batch = micro_batches(config, devices)
    flops_per_step = step_flops(config, size, words.target)
    flops = flops_per_step * config.training.steps
    data = _epoch_figures(config) if tokenizer else None
    length = math.ceil(data.mean_length) if data else TYPICAL_LENGTH
    longest = data.longest if data else config.data.max_pieces + 1
    device = _device(config)
    return RunFigures(
        vocabularies=words,
        parameters=size,
        flops_per_step=flops_per_step,
        flops=flops,
        steps=config.training.steps,
        global_batch=batch,
        devices=devices,
        device_batch=device_batch,
        accumulation=accumulation,
        data=data,
        memory=run_memory(config, size, words.target, devices, length, device.storage),
        longest_memory=run_memory(config, size, words.target, devices, longest, device.storage).total,
        estimate=estimate(flops, device.name, device.precision, device.peak, devices),
    )


class _Device(NamedTuple):
    """The type of device that trains."""

    name: str
    precision: str
    peak: float
    """Operations per second."""
    storage: Storage


def _device(config: Config) -> _Device:
    """Return the type of device that is named, or that of this machine."""
    if name := config.describe.device:
        precision, found = precision_on(name, config.runtime.precision), find_device(name)
        storage = Storage(gpu=True, half=precision != "fp32", fused=found.fused)
        return _Device(name, precision, found.peak(precision), storage)
    machine = prepare_machine(config.runtime)
    gpu, half = machine.device.type == "cuda", machine.precision in HALF_PRECISIONS
    storage = Storage(gpu=gpu, half=half, fused=not gpu or has_bf16(machine.device))
    return _Device(device_name(machine.device), machine.precision_name, measured_peak(machine), storage)


def _vocabularies(config: Config, tokenizer: TrainedTokenizer | None) -> Vocabularies:
    """Return the sizes of the prepared vocabularies, or those to expect if there is no tokenizer yet."""
    if tokenizer is not None:
        return Vocabularies(tokenizer.source_vocabulary, tokenizer.target_vocabulary)
    expected = config.tokenizer.vocab_size
    return Vocabularies(expected, expected if is_text(config.data.target_lang) else TREE_SYMBOLS)


def _device_count(config: Config) -> int:
    """Return the number of devices asked for, of processes that torchrun started, or of GPUs on this machine."""
    if config.describe.gpus or config.describe.device:
        return max(1, config.describe.gpus)
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    return 1 if config.runtime.device == "cpu" else max(1, torch.cuda.device_count())


def _epoch_figures(config: Config) -> EpochFigures | None:
    """Return the figures of an epoch, or None if the data, or one of several corpora, is not prepared or not here."""
    tasks, layout = read_manifest(config.data_folder).tasks, CorpusLayout(config.data_folder)
    names = [each.name for each in training_splits(config.data)]
    if not all(encode_task(name) in tasks and layout.store(name).is_file() for name in names):
        return None
    store = open_training_text(config.data_folder, config.data)
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    steps = len(plan_epoch(lengths, Batching.of(config.training, config.seed), epoch=0))
    return EpochFigures(
        pairs=len(store),
        steps_per_epoch=steps,
        epochs=config.training.steps / steps,
        tokens_per_step=(int(lengths.source.sum()) + int(lengths.target.sum())) / steps,
        mean_length=float(lengths.target.mean()),
        longest=int(max(lengths.source.max(), lengths.target.max())),
    )


def as_text(config: Config, figures: RunFigures) -> str:
    """Return the figures as text for a terminal."""
    parameters = {**figures.parameters._asdict(), "total": figures.parameters.total}
    batch, minutes = f"{figures.global_batch:,}", config.training.max_training_minutes
    source, target = figures.vocabularies
    pieces = f"{source:,}" if source == target else f"{source:,} source and {target:,} target"
    lines = [f"{config.name}, with {pieces} word pieces", "parameters"]
    lines += [f"  {name:<12} {count:>15,}" for name, count in parameters.items()]
    lines += [
        f"batch: at most {batch} source and {batch} target tokens per step",
        f"  devices: {figures.devices}, each with {figures.accumulation} x {figures.device_batch:,} of them",
        f"cost: {figures.flops_per_step:.2e} FLOPs per step, {figures.flops:.2e} in {figures.steps:,} steps"
        + (f", if training.max_training_minutes={minutes:g} are enough for them" if minutes else ""),
        *([f"warning: {warning}"] if (warning := config.training.warmup_warning) else []),
        _data_line(figures.data),
        *_memory_lines(config, figures),
        *_time_lines(figures),
    ]
    return "\n".join(lines)


def _data_line(data: EpochFigures | None) -> str:
    if data is None:
        return for_this_installation("data: not prepared yet, so the steps per epoch are unknown (`make data`)")
    return (
        f"data: {data.pairs:,} pairs; an epoch has {data.steps_per_epoch:,} steps of "
        f"{data.tokens_per_step:,.0f} tokens on average, the run {data.epochs:.1f} epochs"
    )


def _memory_lines(config: Config, figures: RunFigures) -> list[str]:
    memory, longest, device = figures.memory, figures.longest_memory, config.describe.device
    amounts = ", ".join(f"{name} {amount / 1e9:.2f}" for name, amount in memory._asdict().items())
    lines = [f"memory: about {memory.total / 1e9:.1f} GB per device of {device or 'this machine'} ({amounts})"]
    if longest > 1.01 * memory.total:
        lines.append(f"  with a batch of the longest sentences: {longest / 1e9:.1f} GB")
    if device and longest > (available := find_device(device).memory):
        state = memory.total - memory.activations
        advice = (
            "lower training.device_tokens"
            if state < available
            else f"{state / 1e9:.1f} GB do not depend on the batch; divide them by runtime.shard=weights"
        )
        lines.append(f"  more than the {available / 1e9:.0f} GB of one {device}: {advice}")
    return lines


def _time_lines(figures: RunFigures) -> list[str]:
    found = figures.estimate
    return [
        f"time: about {duration(found.hours)} on {figures.devices} x {found.device}, if training reaches "
        f"{found.share:.0%} of {found.peak / 1e12:.3g} TFLOP/s in {found.precision};",
        "  without communication between devices, validation and checkpoints",
    ]
