"""Files that are cut short, changed by a bit, or taken for one another."""

import random
from collections.abc import Iterator
from pathlib import Path

from aftermath import LostError, Outcome, Play, Trial, aftermath
from workshop import STEPS, Workshop

DAMAGED = {
    "data": ("data/toy/train.en", "data/toy/train.en.tokens", "data/toy/valid.de.offsets", "data/toy/test.store.json",
             "data/toy/tokenizer.model", "data/toy/manifest.json"),
    "train": ("data/toy/train.en.tokens", "data/toy/train.de.offsets", "data/toy/valid.en.tokens", "data/toy/valid.de",
              "data/toy/train.store.json", "data/toy/tokenizer.model", "data/toy/manifest.json"),
    "resume": ("model.safetensors", "trainer.pt", "tokenizer.model", "config.yaml", "meta.json"),
    "average": ("model.safetensors", "tokenizer.model", "config.yaml", "meta.json"),
    "eval": ("data/toy/test.en", "data/toy/test.de", "outputs/toy/checkpoints/averaged/model.safetensors",
             "outputs/toy/checkpoints/averaged/meta.json", "outputs/toy/checkpoints/averaged/tokenizer.model"),
    "export": ("outputs/toy/checkpoints/averaged/model.safetensors", "outputs/toy/checkpoints/averaged/config.yaml",
               "outputs/toy/checkpoints/averaged/tokenizer.model"),
}  # fmt: skip
"""Files of each stage; those of `resume` and `average` lie in the last checkpoint."""


def damages(rng: random.Random) -> Iterator[Trial]:
    """Files that are no longer what was written."""
    for name, files in DAMAGED.items():
        stage = "train" if name == "resume" else name
        for file in files:
            for kind in ("truncated file", "flipped bit", "swapped file"):
                yield Trial(kind, stage, file, _damaged(name, stage, file, kind, rng.random()))


def _damaged(name: str, stage: str, file: str, kind: str, where: float) -> Play:
    def play(shop: Workshop, folder: Path) -> Outcome:
        if stage == "data" and shop.run("data", folder).code:
            raise LostError("the data could not be prepared")
        if name == "resume":  # ended half way
            shop.run("train", folder, "training.steps=6")
        within = name in ("resume", "average")
        last = folder / "outputs/toy/checkpoints" / f"step-{6 if name == 'resume' else STEPS:08}"
        path = last / file if within else folder / file
        _harm(path, kind, where)
        return aftermath(shop, folder, stage, path)

    return play


def _harm(path: Path, kind: str, where: float) -> None:
    content = bytearray(path.read_bytes())
    if kind == "truncated file":
        path.write_bytes(content[: int(where * len(content))])
    elif kind == "flipped bit":
        content[int(where * len(content))] ^= 1 << int(where * 1000) % 8
        path.write_bytes(content)
    else:
        other = _twin(path)
        content, theirs = bytes(content), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(content)


def _twin(path: Path) -> Path:
    """Another file that might be mistaken for a file."""
    same_kind = sorted(
        other
        for folder in (path.parent, *path.parent.parent.glob("step-*"))
        for other in folder.glob(f"*{path.suffix}")
        if other != path and other.is_file() and other.read_bytes() != path.read_bytes()
    )
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    return (same_kind or [other for other in others if other.name != ".lock"])[0]
