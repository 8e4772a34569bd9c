"""A copy of this repository whose settings are small, with small text in the files that the documents name."""

import os
import shutil
from pathlib import Path
from typing import Any

import yaml

from test_all.small_text import sentence_pairs, trees, write_lines, write_pairs
from test_all.stages import ROOT, Context

SMALL: dict[str, dict[str, Any]] = {
    "model": {"layers": 1, "d_model": 16, "d_ff": 16, "heads": 2},
    "training": {
        "steps": 2000, "batch_tokens": 600, "device_tokens": 0, "warmup_steps": 20, "valid_every": 1000,
        "save_every": 1000, "log_every": 100, "max_training_minutes": 0.04,
    },
    "tokenizer": {"vocab_size": 200},
    "decoding": {"beam": 2, "extra_length": 2},
}  # fmt: skip
"""The settings that take the place of those in conf/. What a command sets itself stays.

Training ends after seconds, so most translations are cut off at their longest length. There an export for
CTranslate2 differs from the model.
"""
KEPT = [
    f"{group}.{name}"
    for group, names in {
        "model": ("layers", "d_model", "d_ff", "heads"),
        "training": ("steps", "batch_tokens", "warmup_steps"),
        "tokenizer": ("vocab_size",),
    }.items()
    for name in names
]
"""The small settings that `experiment=own` would otherwise derive from text and time."""
OWN_TEXT = ("train", "valid", "test", "news", "clean", "crawled", "raw", "real", "bt", "a", "b")
"""Names of the user's files in the documents."""
PAIRS = 1000
SPLITS = ("train", "valid", "test")


def make_small_clone(context: Context, python: Path) -> Path:
    """Clone the working tree, make its settings small, and write the text that the documents name."""
    clone = context.folder / "clone"
    names = context.run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in names:
        if name and (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    link_environment(clone, python.parents[1])
    shrink_settings(clone)
    _write_text(clone)
    return clone


def link_environment(clone: Path, environment: Path) -> None:
    """Give the clone the packages of an environment, as if `make setup` had installed them."""
    venv = clone / ".venv"
    venv.mkdir()
    for entry in environment.iterdir():
        if entry.name in ("bin", "lib", "lib64", "include", "pyvenv.cfg"):
            (venv / entry.name).symlink_to(entry.resolve())
    for name in ("requirements.lock", "pyproject.toml"):
        os.utime(clone / name, (0, 0))
    (venv / "ready").touch()


def shrink_settings(clone: Path) -> None:
    """Replace the sizes in conf/ and of the demo's text, and the Hub by files."""
    for group, values in SMALL.items():
        for file in (clone / "conf" / group).glob("*.yaml"):
            _write_yaml(file, {**(_read_yaml(file)), **values})
    for file in (clone / "conf" / "experiment").rglob("*.yaml"):
        settings = _read_yaml(file)
        for group, values in SMALL.items():
            if group in settings:
                settings[group] = {name: value for name, value in settings[group].items() if name not in values}
        if file == clone / "conf" / "experiment" / "own.yaml":
            settings["own"]["keep"] = KEPT
        _write_yaml(file, {name: value for name, value in settings.items() if value != {}})
    for name in ("wmt14_en_de", "wmt14_en_fr"):
        files = {split: [f"{split}.en", f"{split}.de"] for split in SPLITS}
        _write_yaml(clone / "conf" / "data" / f"{name}.yaml", {"corpus": name, "source": "files", **files})
    _replace(clone / "src/nmt/features/demo/source.py", '{"train": 30_000, "valid": 500, "test": 1000}',
             '{"train": 1000, "valid": 20, "test": 20}')  # fmt: skip


def _read_yaml(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8")) or {}


def _write_yaml(file: Path, settings: dict[str, Any]) -> None:
    """Write settings below the comments at the beginning of a file, which tell Hydra where they belong."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    head = "".join(line for line in lines if line.startswith("#"))
    file.write_text(head + (yaml.safe_dump(settings, sort_keys=False) if settings else ""), encoding="utf-8")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"{file} has no {old}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _write_text(clone: Path) -> None:
    """Write parallel text, text in one language and trees under the names that the documents use."""
    drawn = sentence_pairs(len(OWN_TEXT) * PAIRS)
    for place, name in enumerate(OWN_TEXT):
        pairs = drawn[place * PAIRS : place * PAIRS + (20 if name in ("valid", "test") else PAIRS)]
        write_pairs(clone / f"{name}.en", clone / f"{name}.de", pairs)
        shutil.copy(clone / f"{name}.de", clone / f"{name}.fr")
    for language in ("en", "de"):
        for name, file in (("train", "train"), ("valid", "val"), ("test", "test2016")):
            target = clone / "data" / "raw" / "multi30k" / f"{file}.{language}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(clone / f"{name}.{language}", target)
        for name, file in (("train", "train"), ("bt", "back_translated")):
            shutil.copy(clone / f"{name}.{language}", clone / "data" / "raw" / f"{file}.{language}")
        lines = [line for name in OWN_TEXT for line in _lines(clone / f"{name}.{language}")]
        write_lines(clone / "data" / "raw" / f"crawled.{language}", lines)
        lines = _lines(clone / f"raw.{language}")[:20]
        write_lines(clone / f"mono.{language}", lines)
        write_lines(clone / f"text.{language}", lines[:5])
    bracketed = trees(300)
    for split, count in (("train", 200), ("valid", 10), ("test", 10)):
        write_lines(clone / f"{split}.mrg", bracketed[:count])
    for section in range(2, 24):
        lines = bracketed[10 * section : 10 * section + 10]
        write_lines(clone / f"data/raw/wsj/{section:02}/wsj_{section:02}00.mrg", lines)
