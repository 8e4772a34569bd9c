"""`nmt describe`: estimate what a run needs, before it starts."""

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import Any

import torch

from nmt.compute.machine import HALF_PRECISIONS, device_name, has_bf16, prepare_machine
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data.batches import Batching, PairLengths, plan_epoch
from nmt.data.corpora import training_splits
from nmt.data.manifest import encode_task, read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.prepared import prepared_tokenizer
from nmt.errors import ConfigError, for_this_installation
from nmt.estimate.hardware import Estimate, duration, estimate, find_device, measured_peak, precision_on
from nmt.estimate.memory import Memory, Storage, micro_batches, run_memory
from nmt.estimate.parameters import ParameterCounts, count_parameters, step_flops

TREE_SYMBOLS = 100
"""Words of the target side if it is trees: a treebank has some 30 labels of phrases, and the tags."""
TYPICAL_LENGTH = 30
"""Tokens per sentence, assumed if the data is not prepared."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of the prepared data."""

    pairs: int
    steps: int
    tokens_per_step: float
    """Source and target tokens per step, on average."""
    mean_length: float
    """Target tokens per sentence, on average."""
    longest: int
    """Tokens of the longest sentence, source or target."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run needs."""

    vocabularies: tuple[int, int]
    """The words of the source and of the target, as prepared, or to expect."""
    parameters: ParameterCounts
    flops_per_step: int
    tokens_per_step: int
    """Source and target tokens of a global batch, at most."""
    steps: int
    global_batch: int
    """Source tokens of a global batch, and as many target tokens."""
    devices: int
    accumulation: int
    """Micro-batches per step on each device."""
    device_batch: int
    """Source tokens of a micro-batch."""
    data: Epoch | None
    """None if the data is not prepared."""
    memory: Memory
    """Memory per device with sentences of average length."""
    longest_memory: int
    """Bytes per device for a micro-batch of the longest sentences."""
    estimate: Estimate
    """The time of the steps."""

    @property
    def flops(self) -> int:
        """Floating-point operations of all steps."""
        return self.flops_per_step * self.steps

    def as_json(self) -> dict[str, Any]:
        """Return the figures as JSON objects, whose keys scripts rely on."""
        named = {name: getattr(self, name)._asdict() for name in ("parameters", "memory", "estimate")}
        totals = {"parameters": {"total": self.parameters.total}, "memory": {"total": self.memory.total}}
        return {**asdict(self), "flops": self.flops, **{name: totals.get(name, {}) | named[name] for name in named}}


def run(config: Config) -> None:
    """Print the figures, as text or as JSON."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output}: describe writes to standard output only; remove output=")
    figures = describe(config, _device_count(config))
    print(json.dumps(figures.as_json(), indent=2) if config.output == "json" else as_text(config, figures))


def describe(config: Config, devices: int) -> Figures:
    """Return the figures of a run on this number of devices."""
    tokenizer, expected = prepared_tokenizer(config), config.tokenizer.vocab_size
    words = expected, expected if is_text(config.data.target_lang) else TREE_SYMBOLS
    if tokenizer is not None:
        words = tokenizer.source_vocabulary, tokenizer.target_vocabulary
    size = count_parameters(config.model, *words)
    flops_per_step = step_flops(config, size, words[1])
    epoch = _epoch(config) if tokenizer else None
    lengths = (math.ceil(epoch.mean_length), epoch.longest) if epoch else (TYPICAL_LENGTH, config.data.max_pieces + 1)
    (name, precision, peak), storage = _device(config)
    memory, longest = (run_memory(config, size, words[1], devices, length, storage) for length in lengths)
    accumulation, device_batch = micro_batches(config, devices)
    return Figures(
        vocabularies=words,
        parameters=size,
        flops_per_step=flops_per_step,
        tokens_per_step=2 * config.training.batch_tokens,
        steps=config.training.steps,
        global_batch=config.training.batch_tokens,
        devices=devices,
        accumulation=accumulation,
        device_batch=device_batch,
        data=epoch,
        memory=memory,
        longest_memory=longest.total,
        estimate=estimate(flops_per_step * config.training.steps, name, precision, peak, devices),
    )


def _device(config: Config) -> tuple[tuple[str, str, float], Storage]:
    """Return the name, precision and FLOP/s of the device that is named, or of this machine, and what it stores."""
    if name := config.describe.device:
        precision, found = precision_on(name, config.runtime.precision), find_device(name)
        storage = Storage(gpu=True, half=precision != "fp32", fused=found.fused)
        return (name, precision, found.peak(precision)), storage
    machine = prepare_machine(config.runtime)
    gpu, half = machine.device.type == "cuda", machine.precision in HALF_PRECISIONS
    storage = Storage(gpu=gpu, half=half, fused=not gpu or has_bf16(machine.device))
    return (device_name(machine.device), machine.precision_name, measured_peak(machine)), storage


def _device_count(config: Config) -> int:
    """Return the number of devices asked for, of processes that torchrun started, or of GPUs on this machine."""
    if config.describe.gpus or config.describe.device:
        return max(1, config.describe.gpus)
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    return 1 if config.runtime.device == "cpu" else max(1, torch.cuda.device_count())


def _epoch(config: Config) -> Epoch | None:
    """Return the figures of an epoch, or None if the data, or one of several corpora, is not prepared or not here."""
    manifest = read_manifest(config.data_folder)
    files = [manifest.outputs(encode_task(each.name)) for each in training_splits(config.data)]
    if not all(found and all((config.data_folder / name).is_file() for name in found) for found in files):
        return None
    store = open_training_text(config.data_folder, config.data)
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    steps = len(plan_epoch(lengths, Batching.of(config.training, config.seed), epoch=0))
    return Epoch(
        pairs=len(store),
        steps=steps,
        tokens_per_step=(int(lengths.source.sum()) + int(lengths.target.sum())) / steps,
        mean_length=float(lengths.target.mean()),
        longest=int(max(lengths.source.max(), lengths.target.max())),
    )


def as_text(config: Config, figures: Figures) -> str:
    """Return the figures as a table for a terminal."""
    size, time = figures.parameters, figures.estimate
    enough = f", if {minutes:g} minutes are enough" if (minutes := config.training.max_training_minutes) else ""
    rows = [
        ("words", " source and ".join(f"{each:,}" for each in figures.vocabularies) + " target"),
        ("parameters", f"{size.total:,} (" + ", ".join(f"{name} {n:,}" for name, n in size._asdict().items()) + ")"),
        ("batch", f"{figures.global_batch:,} source and as many target tokens, at most"),
        ("devices", f"{figures.devices}, each with {figures.accumulation} x {figures.device_batch:,} of these tokens"),
        ("steps", f"{figures.steps:,} of {figures.flops_per_step:.2e} FLOPs, together {figures.flops:.2e}{enough}"),
        ("epochs", _epochs(figures)),
        ("memory", _memory(figures)),
        (
            "time",
            f"about {duration(3600 * time.hours)} on {figures.devices} x {time.device}, if training reaches "
            f"{time.share:.0%} of {time.peak / 1e12:.3g} TFLOP/s in {time.precision}",
        ),
    ]
    device = config.describe.device
    if device and figures.longest_memory > (available := find_device(device).memory):
        limit = f"this is more than the {available / 1e9:.0f} GB of one {device}"
        rows.append(("warning", f"{limit}: lower training.device_tokens, or set runtime.shard=weights"))
    if config.training.warmup_warning:
        rows.append(("warning", config.training.warmup_warning))
    return "\n".join([config.name, *(f"  {name:<12}{text}" for name, text in rows)])


def _epochs(figures: Figures) -> str:
    if not (epoch := figures.data):
        return for_this_installation("unknown until the data is prepared (`make data`)")
    tokens = f"{epoch.steps:,} steps of {epoch.tokens_per_step:,.0f} tokens on average"
    return f"{figures.steps / epoch.steps:.1f} of {epoch.pairs:,} pairs, {tokens}"


def _memory(figures: Figures) -> str:
    memory, longest = figures.memory, figures.longest_memory
    amounts = ", ".join(f"{name} {amount / 1e9:.2f}" for name, amount in memory._asdict().items())
    more = f"; {longest / 1e9:.1f} GB with the longest sentences" if longest > 1.01 * memory.total else ""
    return f"about {memory.total / 1e9:.1f} GB per device ({amounts}){more}"
