"""`nmt describe`: estimate what a run needs, before it starts."""

import json
import math
from typing import Any

import torch

from nmt.compute.machine import HALF_PRECISIONS, device_name, has_bf16, prepare_machine
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data.batches import Batching, plan_epoch
from nmt.data.corpora import training_splits
from nmt.data.manifest import encode_task, read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.prepared import prepared_tokenizer
from nmt.data.shapes import full_micro_batch_tokens
from nmt.errors import ConfigError, for_this_installation
from nmt.estimate.hardware import SHARE, duration, find_device, hours, measured_peak, precision_on
from nmt.estimate.memory import Storage, run_memory
from nmt.estimate.parameters import count_parameters, step_flops
from nmt.launched import launched_processes
from nmt.runs.layout import RunLayout

TREE_SYMBOLS = 100
"""Words of the target side if it is trees: a treebank has some 30 labels of phrases, and the tags."""
TYPICAL_LENGTH = 30
"""Tokens per sentence, assumed if the data is not prepared."""
Figures = dict[str, Any]
"""The figures of a run, as JSON; scripts rely on the keys."""


def run(config: Config) -> None:
    """Print the figures, as text or as JSON."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output}: describe writes to standard output only; remove output=")
    figures = describe(config, _device_count(config))
    print(json.dumps(figures, indent=2) if config.output == "json" else as_text(config, figures))


def describe(config: Config, devices: int) -> Figures:
    """Return the figures of a run on this number of devices."""
    tokenizer, epoch, training = prepared_tokenizer(config), None, config.training
    pieces, typical, longest = config.tokenizer.vocab_size, TYPICAL_LENGTH, config.data.max_pieces + 1
    words = pieces, pieces if is_text(config.data.target_lang) else TREE_SYMBOLS
    if tokenizer is not None:
        words = tokenizer.source_vocabulary, tokenizer.target_vocabulary
        if epoch := _epoch(config):
            typical, longest = math.ceil(epoch["mean_length"]), epoch["longest"]
    size = count_parameters(config.model, *words)
    flops = step_flops(config, size, words[1])
    device, precision, peak, storage = _device(config)
    device_batch = full_micro_batch_tokens(training.batch_tokens, training.device_tokens, devices)
    memory, most = (
        run_memory(config, size, words[1], device_batch, each, storage, devices) for each in (typical, longest)
    )
    return {
        "vocabularies": words,
        "parameters": {"total": size.total, **size._asdict()},
        "flops_per_step": flops,
        "tokens_per_step": 2 * training.batch_tokens,  # source and target, at most
        "steps": training.steps,
        "global_batch": training.batch_tokens,  # source tokens, and as many target tokens
        "devices": devices,
        "accumulation": math.ceil(training.batch_tokens / (devices * device_batch)),  # micro-batches on each device
        "device_batch": device_batch,  # source tokens of a micro-batch
        "data": epoch,
        "memory": {"total": memory.total, **memory._asdict()},  # per device, with sentences of average length
        "longest_memory": most.total,
        "estimate": {
            "device": device,
            "precision": precision,
            "peak": peak,  # FLOP/s of a device, of which training is assumed to reach a share
            "share": SHARE,
            "hours": hours(flops * training.steps, peak, devices),
        },
    }


def _device(config: Config) -> tuple[str, str, float, Storage]:
    """Return the name, precision and FLOP/s of the device that is named, or of this machine, and what it stores."""
    if name := config.describe.device:
        precision, found = precision_on(name, config.runtime.precision), find_device(name)
        peak = found.fp32 if precision == "fp32" else found.half
        return name, precision, peak, Storage(gpu=True, half=precision != "fp32", fused=found.fused)
    machine = prepare_machine(config.runtime)
    gpu, half = machine.device.type == "cuda", machine.precision in HALF_PRECISIONS
    storage = Storage(gpu=gpu, half=half, fused=not gpu or has_bf16(machine.device))
    return device_name(machine.device), machine.precision_name, measured_peak(machine), storage


def _device_count(config: Config) -> int:
    """Return the number of devices asked for, of processes that torchrun started, or of GPUs on this machine."""
    if config.describe.gpus or config.describe.device:
        return max(1, config.describe.gpus)
    if launched_processes() > 1:
        return launched_processes()
    return 1 if config.runtime.device == "cpu" else max(1, torch.cuda.device_count())


def _epoch(config: Config) -> Figures | None:
    """Return the figures of an epoch, or None if the data, or one of several corpora, is not prepared or not here."""
    manifest = read_manifest(config.data_folder)
    files = [manifest.outputs(encode_task(each.name)) for each in training_splits(config.data)]
    if not all(found and all((config.data_folder / name).is_file() for name in found) for found in files):
        return None
    store = open_training_text(config.data_folder, config.data)
    lengths = store.pair_lengths
    steps = len(plan_epoch(lengths, Batching.of(config.training, config.seed), epoch=0))
    return {
        "pairs": len(store),
        "steps": steps,
        "tokens_per_step": (int(lengths.source.sum()) + int(lengths.target.sum())) / steps,
        "mean_length": float(lengths.target.mean()),  # target tokens of a sentence
        "longest": int(max(lengths.source.max(), lengths.target.max())),
    }


def as_text(config: Config, figures: Figures) -> str:
    """Return the figures as a table for a terminal."""
    steps, flops, devices, time = (figures[name] for name in ("steps", "flops_per_step", "devices", "estimate"))
    device, memory, longest = config.describe.device, figures["memory"], figures["longest_memory"]
    parts = ", ".join(f"{name} {count:,}" for name, count in figures["parameters"].items() if name != "total")
    amounts = ", ".join(f"{name} {count / 1e9:.2f}" for name, count in memory.items() if name != "total")
    epochs = for_this_installation("unknown until the data is prepared (`make data`)")
    if epoch := figures["data"]:
        tokens = f"{epoch['steps']:,} steps of {epoch['tokens_per_step']:,.0f} tokens on average"
        epochs = f"{steps / epoch['steps']:.1f} of {epoch['pairs']:,} pairs, {tokens}"
    rows = [
        ("words", " source and ".join(f"{each:,}" for each in figures["vocabularies"]) + " target"),
        ("parameters", f"{figures['parameters']['total']:,} ({parts})"),
        ("batch", f"{figures['global_batch']:,} source and as many target tokens, at most"),
        ("devices", f"{devices}, each with {figures['accumulation']} x {figures['device_batch']:,} of these tokens"),
        ("steps", f"{steps:,} of {flops:.2e} FLOPs, together {steps * flops:.2e}"),
        ("epochs", epochs),
        (
            "memory",
            f"about {memory['total'] / 1e9:.1f} GB per device ({amounts}); {longest / 1e9:.1f} GB with the longest "
            "sentences",
        ),
        (
            "time",
            f"about {duration(3600 * time['hours'])} on {devices} x {time['device']}, if training reaches "
            f"{time['share']:.0%} of {time['peak'] / 1e12:.3g} TFLOP/s in {time['precision']}",
        ),
    ]
    if device and longest > (available := find_device(device).memory):
        limit = f"this is more than the {available / 1e9:.0f} GB of one {device}"
        rows.append(("warning", f"{limit}: lower training.device_tokens, or set runtime.shard=weights"))
    if config.own.derive and RunLayout(config.run_folder).newest_checkpoint() is None:
        rows.append(("warning", "training will derive shape, batch and steps that you do not give (own.derive)"))
    if config.training.warmup_warning:
        rows.append(("warning", config.training.warmup_warning))
    return "\n".join([config.name, *(f"  {name:<12}{text}" for name, text in rows)])
