"""Write the curves of the runs into the package."""

import json
from pathlib import Path
from typing import Any

from learning_curves.runs import BASE, RUNS
from nmt.config.compose import compose
from nmt.estimate.parameters import count_parameters, training_flops
from nmt.storage.files import read_json, write_text

PACKAGE = Path("src/nmt/features/forecast/curves.json")
DIGITS = 4
"""Decimal places that are kept."""


def collect(folder: Path) -> None:
    """Write the curves of the runs in a folder into the package, beside those that it has, in the order of the list."""
    found = read_json(PACKAGE)
    found |= {name: _kept(name, read_json(file)) for name in RUNS if (file := folder / f"{name}.json").exists()}
    lines = [f"{_json(name)}: {{\n{_fields(each)}\n}}" for name in RUNS if (each := found.get(name))]
    write_text(PACKAGE, "{\n" + ",\n".join(lines) + "\n}\n")


def _kept(name: str, made: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a run."""
    config = compose([*BASE, f"tokenizer.vocab_size={made['words']}", *RUNS[name].settings])
    model, training, words = config.model, config.training, made["words"]
    size = count_parameters(model, words, words)
    batch = training.batch_tokens
    return {
        **{key: made[key] for key in ("text", "pairs", "words", "steps", "reverse", "characters", "tokens")},
        "parameters": size.total,
        "flops": made["steps"] * training_flops(model, size, words * model.d_model, batch, batch),
        "d_model": model.d_model, "dropout": model.dropout, "optimizer": training.optimizer,
        "learning_rate": training.learning_rate, "schedule": training.schedule, "warmup_steps": training.warmup_steps,
        "batch_tokens": training.batch_tokens, "weight_decay": training.weight_decay,
        "valid": [[step, round(loss, DIGITS), round(nll, DIGITS)] for step, loss, nll in made["valid"]],
        "train": [
            [step, round(loss, DIGITS), round(nll, DIGITS), int(epoch)] for step, loss, nll, _, epoch in made["train"]
        ],
        "bleu": [[step, round(bleu, 2)] for step, bleu in made["bleu"]],
    }  # fmt: skip


def _fields(kept: dict[str, Any]) -> str:
    return ",\n".join(f" {_json(key)}: {_json(value)}" for key, value in kept.items())


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
