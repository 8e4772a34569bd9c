"""`nmt describe`: what a run will be made of, and what it will cost, before anything is spent on it."""

import json
import math
import os
from typing import Any

import torch

from nmt.compute.machine import prepare_machine
from nmt.config.schema import Config
from nmt.data.batches import PairLengths, plan_epoch
from nmt.data.manifest import read_manifest
from nmt.data.store import PairStore
from nmt.errors import ConfigError
from nmt.estimate.hardware import EFFICIENCY, SUSTAINED, estimate, find_device, precision_on
from nmt.estimate.memory import ActivationStorage, Memory, activation_storage, training_memory
from nmt.estimate.parameters import ParameterCounts, count_parameters, training_flops
from nmt.training.schedule import warmup_warning

TYPICAL_LENGTH = 30
"""Tokens of a sentence, where there is no prepared data to ask."""


def run(config: Config) -> None:
    """Print the figures as text, or as JSON with output=json."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output} is nothing that describe writes: use output=json, or leave it out")
    figures = describe(config, _devices(config))
    print(json.dumps(figures, indent=2) if config.output == "json" else as_text(config, figures))


def describe(config: Config, devices: int) -> dict[str, Any]:
    """The figures of a run on so many devices."""
    words, batch, budget = config.tokenizer.vocab_size, config.training.batch_tokens, config.training.device_tokens
    size = count_parameters(config.model, words, words)
    accumulation = math.ceil(batch / (devices * budget)) if budget else 1
    device_batch = math.ceil(batch / (devices * accumulation))
    flops = training_flops(size, words * config.model.d_model, batch, batch)
    data = _data(config)
    return {
        "parameters": {"total": size.total, **size._asdict()},
        "flops_per_step": flops,
        "flops": flops * config.training.steps,
        "tokens_per_step": 2 * batch,
        "steps": config.training.steps,
        "global_batch": batch,
        "devices": devices,
        "device_batch": device_batch,
        "accumulation": accumulation,
        "data": data,
        "memory": _memory(config, size, device_batch, data),
        "estimate": _estimate(config, flops * config.training.steps, devices),
    }


def _devices(config: Config) -> int:
    """Those asked for, or the processes that torchrun started, or the GPUs that a run would find."""
    if config.gpus or config.device:
        return max(1, config.gpus)
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    return 1 if config.runtime.device == "cpu" else max(1, torch.cuda.device_count())


def _data(config: Config) -> dict[str, Any] | None:
    """What the prepared data says of an epoch; None where it is not prepared."""
    if "encode train" not in read_manifest(config.data_folder).tasks:
        return None
    store = PairStore.open(config.data_folder, "train")
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    steps = len(plan_epoch(lengths, config.training.batch_tokens, config.seed, epoch=0))
    return {
        "pairs": len(store),
        "steps_per_epoch": steps,
        "epochs": config.training.steps / steps,
        "tokens_per_step": (int(lengths.source.sum()) + int(lengths.target.sum())) / steps,
        "mean_length": float(lengths.target.mean()),
        "longest": int(max(lengths.source.max(), lengths.target.max())),
    }


def _memory(config: Config, size: ParameterCounts, device_batch: int, data: dict[str, Any] | None) -> dict[str, Any]:
    """Bytes on a device; and those of a batch of the longest sentences, where attention is padded."""
    on = _keeping(config)
    length = math.ceil(data["mean_length"]) if data else TYPICAL_LENGTH
    longest = data["longest"] if data else config.data.max_pieces + 1

    def of(sentence: int) -> Memory:
        words = config.tokenizer.vocab_size
        return training_memory(config.model, size.total, words, device_batch, device_batch, sentence, on)

    return {"total": of(length).total, **of(length)._asdict(), "longest_sentences": of(longest).total}


def _keeping(config: Config) -> ActivationStorage:
    if config.device:
        return activation_storage(gpu=True, half=precision_on(config.device, config.runtime.precision) == "bf16")
    machine = prepare_machine(config.runtime)
    return activation_storage(gpu=machine.device.type == "cuda", half=machine.precision == torch.bfloat16)


def _estimate(config: Config, flops: int, devices: int) -> dict[str, Any] | None:
    """Hours, energy and money on the device that is named; None where none is."""
    if not config.device:
        return None
    device, precision = find_device(config.device), precision_on(config.device, config.runtime.precision)
    peak = device.peak(precision)
    assumptions = {
        "sustained": SUSTAINED, "efficiency": EFFICIENCY, "precision": precision, "peak": peak,
        "memory": device.memory, "watts": device.watts, "price": device.price,
    }  # fmt: skip
    return {"device": config.device, **estimate(flops, peak, device, devices)._asdict(), "assumptions": assumptions}


def as_text(config: Config, figures: dict[str, Any]) -> str:
    """The figures, for people."""
    parameters = figures["parameters"]
    lines = [f"{config.name}, with {config.tokenizer.vocab_size:,} word pieces", "parameters"]
    lines += [f"  {part:<12} {parameters[part]:>15,}" for part in ("embedding", "encoder", "decoder", "total")]
    lines += [
        f"batch: at most {figures['global_batch']:,} source and {figures['global_batch']:,} target tokens a step",
        f"  devices: {figures['devices']}, each with {figures['accumulation']} x {figures['device_batch']:,} of them",
        f"cost: {figures['flops_per_step']:.2e} FLOPs a step, {figures['flops']:.2e} in {figures['steps']:,} steps",
        *([f"warning: {warning}"] if (warning := warmup_warning(config.training)) else []),
        *_data_lines(figures["data"]),
        *_memory_lines(config, figures["memory"]),
        *_estimate_lines(config, figures),
    ]
    return "\n".join(lines)


def _data_lines(data: dict[str, Any] | None) -> list[str]:
    if data is None:
        return ["data: not prepared yet, so an epoch's steps are not known (`make data`)"]
    return [
        f"data: {data['pairs']:,} pairs; an epoch is {data['steps_per_epoch']:,} steps of "
        f"{data['tokens_per_step']:,.0f} tokens on average, the run {data['epochs']:.1f} epochs"
    ]


def _memory_lines(config: Config, memory: dict[str, Any]) -> list[str]:
    parts = ", ".join(f"{part} {memory[part] / 1e9:.2f}" for part in Memory._fields)
    where = config.device or "this machine"
    lines = [f"memory: about {memory['total'] / 1e9:.1f} GB on each device of {where} ({parts})"]
    if memory["longest_sentences"] > 1.01 * memory["total"]:
        lines.append(f"  with a batch of the longest sentences: {memory['longest_sentences'] / 1e9:.1f} GB")
    if config.device and memory["longest_sentences"] > (limit := find_device(config.device).memory):
        lines.append(f"  more than the {limit / 1e9:.0f} GB of a {config.device}: set training.device_tokens lower")
    return lines


def _estimate_lines(config: Config, figures: dict[str, Any]) -> list[str]:
    guess = figures["estimate"]
    if guess is None:
        return ["time: name a device for an estimate, such as device=h100 gpus=8"]
    assumed = guess["assumptions"]
    return [
        f"estimate for {figures['devices']} x {config.device}: {_duration(guess['hours'])}, "
        f"{guess['kilowatt_hours']:.1f} kWh, {guess['dollars']:,.2f} dollars; "
        f"the floor is {_duration(guess['floor_hours'])}",
        f"  assuming {assumed['peak'] / 1e12:g} TFLOP/s at peak in {assumed['precision']}, of which a large matrix "
        f"product sustains {assumed['sustained']:.0%} (the floor) and a step {assumed['efficiency']:.0%} of that;",
        f"  {assumed['watts']:.0f} W and {assumed['price']:.2f} dollars an hour for each device; "
        "validation, checkpoints and idle hosts not counted",
    ]


def _duration(hours: float) -> str:
    return f"{60 * hours:.0f} minutes" if hours < 1.5 else f"{hours:.1f} hours"
