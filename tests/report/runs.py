"""Make runs for reports without training: real data and files, invented weights and curves."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from nmt.config.compose import compose
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.data.prepare import prepare
from nmt.evaluation.metrics import score_text
from nmt.evaluation.record import EvaluationRecord, write_evaluation
from nmt.model.build import build_model
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.runs.checkpoints import Checkpoints
from nmt.storage.files import write_json, write_text
from nmt.text.tokenizer import Tokenizer
from tests.integration.toy import pairs, write_sides

SCRIPT_LIKE_SOURCE = "</script><b>&amp; </script>"
"""A source sentence that would end the script element if it were not escaped."""
EVENTS: list[dict[str, Any]] = [
    {"event": "start", "step": 0, "time": 0.0},
    {"event": "train", "step": 10, "time": 10.0, "loss": 5.0, "perplexity": 90.0, "learning_rate": 1e-4,
     "tokens_per_second": 900.0, "gradient_norm": 1.5},
    {"event": "valid", "step": 10, "time": 12.0, "loss": 4.5, "perplexity": 80.0, "bleu": 3.0},
    {"event": "start", "step": 10, "time": 1012.0},
    {"event": "train", "step": 20, "time": 1020.0, "loss": None, "perplexity": 30.0, "learning_rate": 2e-4,
     "tokens_per_second": 1000.0, "gradient_norm": 1.0, "skipped": 3},
    {"event": "valid", "step": 20, "time": 1021.0, "loss": 3.0, "perplexity": 20.0, "bleu": 8.0},
]  # fmt: skip
"""Ten steps, a resume after 1000 seconds, ten more steps of which three were skipped."""


SCORED: dict[str, Any] = {"split": "test", "languages": ("en", "de"), "bleu_tokenizer": "13a"}
"""What each record of scores says."""


def settings(folder: Path, *overrides: str) -> Config:
    """Return the settings of a tiny run on the toy language."""
    return compose([
        "data=files", "data.corpus=toy", f"paths.data={folder}/data", f"paths.outputs={folder}/outputs", "name=first",
        *(f"data.{split}=[{folder}/{split}.en,{folder}/{split}.de]" for split in ("train", "valid", "test")),
        "data.max_pieces=60", "tokenizer.vocab_size=90", "model.layers=2", "model.d_model=16", "model.d_ff=16",
        "model.heads=2", "training.steps=20", "training.batch_tokens=200", "runtime.workers=1", "runtime.device=cpu",
        "checkpoint=last", *overrides,
    ])  # fmt: skip


def prepare_toy(folder: Path) -> None:
    """Write the toy corpus and prepare it."""
    for seed, (split, count) in enumerate({"train": 200, "valid": 10, "test": 30}.items()):
        lines = pairs(count, seed)
        if split == "test":
            lines[7] = (SCRIPT_LIKE_SOURCE, lines[7][1])
        write_sides(folder / split, lines)
    prepare(settings(folder))


def references(config: Config) -> list[str]:
    """Return the references of the test set."""
    return (config.data_folder / "test.de").read_text(encoding="utf-8").splitlines()


def make_run(config: Config, hypotheses: Sequence[str] = ()) -> Path:
    """Write the files of a run; scores only if there are translations."""
    folder = config.run_folder
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS), encoding="utf-8")
    write_json(folder / "environment.json", {"cpu": "a processor", "threads": 2, "devices": []})
    tokenizer = Tokenizer.load(config.data_folder)
    torch.manual_seed(1)
    Checkpoints(folder).save(
        Checkpoint(
            meta=CheckpointMeta(step=20),
            weights=build_model(config.model, tokenizer.source_size, tokenizer.target_size).state_dict(),
            trainer={},
            tokenizer_files=tokenizer.files,
            config_text=to_yaml(config),
        )
    )
    if hypotheses:
        write_text(folder / "eval" / "test.hyp.txt", "".join(f"{line}\n" for line in hypotheses))
        scores = score_text(hypotheses, [references(config)], "de")
        write_evaluation(folder / "eval" / "test.json", EvaluationRecord(**SCORED, scores=scores, perplexity=4.5))
    return folder


def renamed(config: Config, name: str) -> Config:
    """Return the same settings under another name."""
    return replace(config, name=name)
