"""Faults in files: truncated, with a flipped bit, or swapped with another file."""

import random
from collections.abc import Iterator
from pathlib import Path

from faults.recovery import LostError, Outcome, Trial, TrialFunction, recover
from faults.sandbox import STEPS, Sandbox

CORRUPTED_FILES = {
    "data": ("data/toy/train.en", "data/toy/train.en.tokens", "data/toy/valid.de.offsets", "data/toy/test.store.json",
             "data/toy/tokenizer.model", "data/toy/manifest.json", "data/toy/more.train.en",
             "data/toy/more.train.de.tokens"),
    "train": ("data/toy/train.en.tokens", "data/toy/train.de.offsets", "data/toy/valid.en.tokens", "data/toy/valid.de",
              "data/toy/train.store.json", "data/toy/tokenizer.model", "data/toy/manifest.json",
              "data/toy/more.train.en.tokens", "data/toy/more.train.store.json"),
    "resume": ("model.safetensors", "trainer.pt", "tokenizer.model", "config.yaml", "meta.json"),
    "average": ("model.safetensors", "tokenizer.model", "config.yaml", "meta.json"),
    "eval": ("data/toy/test.en", "data/toy/test.de", "outputs/toy/checkpoints/averaged/model.safetensors",
             "outputs/toy/checkpoints/averaged/meta.json", "outputs/toy/checkpoints/averaged/tokenizer.model"),
    "translate": ("outputs/toy/checkpoints/averaged/model.safetensors",
                  "outputs/toy/checkpoints/averaged/tokenizer.model"),
    "synthesize": ("outputs/toy/checkpoints/averaged/model.safetensors",
                   "outputs/toy/checkpoints/averaged/tokenizer.model"),
}  # fmt: skip
"""Files to corrupt before each command; those of `resume` and `average` are in the last checkpoint."""


def corruptions(rng: random.Random) -> Iterator[Trial]:
    """Yield every kind of corruption of every such file."""
    for name, files in CORRUPTED_FILES.items():
        command = "train" if name == "resume" else name
        for file in files:
            for kind in ("truncated file", "flipped bit", "swapped file"):
                where = rng.random()
                what = file if kind == "swapped file" else f"{file}, at {where:.1%}"
                yield Trial(kind, command, what, _corrupted(name, command, file, kind, where))


def _corrupted(name: str, command: str, file: str, kind: str, where: float) -> TrialFunction:
    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        if command == "data" and sandbox.run("data", folder).code:
            raise LostError("the data could not be prepared")
        if name == "resume":  # ended halfway
            sandbox.run("train", folder, "training.steps=6")
        within = name in ("resume", "average")
        last = folder / "outputs/toy/checkpoints" / f"step-{6 if name == 'resume' else STEPS:08}"
        path = last / file if within else folder / file
        _corrupt(path, kind, where)
        return recover(sandbox, folder, command, path)

    return run_trial


def _corrupt(path: Path, kind: str, where: float) -> None:
    content = bytearray(path.read_bytes())
    if kind == "truncated file":
        path.write_bytes(content[: int(where * len(content))])
    elif kind == "flipped bit":
        content[int(where * len(content))] ^= 1 << int(where * 1000) % 8
        path.write_bytes(content)
    else:
        other = _similar_file(path)
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)


def _similar_file(path: Path) -> Path:
    """Return another file, preferably of the same kind, that could be confused with this one."""
    same_kind = sorted(
        other
        for folder in (path.parent, *path.parent.parent.glob("step-*"))
        for other in folder.glob(f"*{path.suffix}")
        if other != path and other.is_file() and other.read_bytes() != path.read_bytes()
    )
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    return (same_kind or [other for other in others if other.name != ".lock"])[0]
