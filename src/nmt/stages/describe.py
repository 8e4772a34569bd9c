"""`nmt describe`: what a run will be made of, before anything is spent on it."""

import json
import math
import os
from typing import Any

import torch

from nmt.config.schema import Config
from nmt.errors import ConfigError
from nmt.model.size import model_size, training_flops


def run(config: Config) -> None:
    """Print the figures as text, or as JSON with output=json."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output} is nothing that describe writes: use output=json, or leave it out")
    figures = describe(config, _devices(config.runtime.device))
    print(json.dumps(figures, indent=2) if config.output == "json" else _as_text(config, figures))


def describe(config: Config, devices: int) -> dict[str, Any]:
    """The figures of a run on so many devices."""
    words, batch, budget = config.tokenizer.vocab_size, config.training.batch_tokens, config.training.device_tokens
    size = model_size(config.model, words, words)
    accumulation = math.ceil(batch / (devices * budget)) if budget else 1
    flops = training_flops(size, words * config.model.d_model, batch, batch)
    return {
        "parameters": {"total": size.total, **size._asdict()},
        "flops_per_step": flops,
        "flops": flops * config.training.steps,
        "tokens_per_step": 2 * batch,
        "steps": config.training.steps,
        "global_batch": batch,
        "devices": devices,
        "device_batch": math.ceil(batch / (devices * accumulation)),
        "accumulation": accumulation,
    }


def _devices(name: str) -> int:
    """The processes that torchrun started, or the GPUs that a run would find."""
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    return 1 if name == "cpu" else max(1, torch.cuda.device_count())


def _as_text(config: Config, figures: dict[str, Any]) -> str:
    parameters = figures["parameters"]
    lines = [f"{config.name}, with {config.tokenizer.vocab_size:,} word pieces", "parameters"]
    lines += [f"  {part:<12} {parameters[part]:>15,}" for part in ("embedding", "encoder", "decoder", "total")]
    lines += [
        f"batch: at most {figures['global_batch']:,} source and {figures['global_batch']:,} target tokens a step",
        f"  devices: {figures['devices']}, each with {figures['accumulation']} x {figures['device_batch']:,} of them",
        f"cost: {figures['flops_per_step']:.2e} FLOPs a step, {figures['flops']:.2e} in {figures['steps']:,} steps",
    ]
    return "\n".join(lines)
