"""What a checkpoint is: weights, training state, tokenizer and settings; and its files, with checksums of them all."""

import errno
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from nmt import __version__
from nmt.config.saved import from_yaml, naming_file
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.runs.layout import META, SETTINGS, TRAINER, WEIGHTS
from nmt.storage.files import checksum, is_plain_name, record_of, replacing, seal
from nmt.storage.remote import bring

FORMAT = 1
"""The version of the format; it is raised by a change that older versions of nmt cannot read."""
SIGNS_OF_DAMAGE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)
"""Errors of files that are not as they were written; others, such as missing permissions, may pass."""


class DamagedError(UserError):
    """The content of a checkpoint is not what was written; another checkpoint may still be good."""


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """What evaluations, exports and runs that begin from a checkpoint record of it, to find the same weights again."""

    name: str
    step: int
    sha256: str = ""
    """Checksum of the weights."""
    path: str = ""
    averaged_from: tuple[str, ...] = ()
    """The checkpoints that it is the average of."""
    ensemble: tuple["CheckpointRecord", ...] = ()
    """The other members, if it translated in an ensemble."""
    export: str = ""
    """The folder of the export, if an export of the checkpoint translated."""
    quantization: str = ""
    """The number format of that export's weights."""

    @classmethod
    def of(cls, meta: "CheckpointMeta") -> Self:
        """Describe a checkpoint on the disk."""
        name, averaged = meta.path.name, tuple(meta.averaged_from)
        return cls(name, meta.step, sha256=meta.files[WEIGHTS], path=str(meta.path), averaged_from=averaged)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMeta:
    """The content of a checkpoint's meta.json."""

    step: int
    """The number of updates so far."""
    valid: Mapping[str, float] = field(default_factory=dict)
    """The figures of the validation of this step; empty if it was not validated."""
    interim: bool = False
    """Whether it was saved only because the run was interrupted; the next checkpoint replaces it."""
    only_best: bool = False
    """Whether it was saved only because it was the best so far, between the checkpoints that the settings ask for."""
    averaged_from: Sequence[str] = ()
    """The names of the checkpoints of which this is the average; empty if it is not an average."""
    newest_step: int = 0
    """The step of the run's newest checkpoint when this average was made; 0 if it is not an average, or an old one."""
    origin: CheckpointRecord | None = None
    """The model that the run began from; None if it began with random weights."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The checksums of the other files, by name."""
    path: Path = Path()
    """The folder of the checkpoint, which the file does not contain."""

    @property
    def tokenizer_files(self) -> dict[str, str]:
        """The checksums of the tokenizer's files, by name."""
        return {name: digest for name, digest in self.files.items() if name.startswith("tokenizer")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint in memory."""

    meta: CheckpointMeta
    weights: dict[str, Tensor]
    """The model's parameters by name."""
    trainer: Mapping[str, Any] | None = None
    """The training state in trainer.pt: plain containers, numbers, texts and tensors. None without it."""
    config_text: str = ""
    """The settings of the training, as YAML."""
    tokenizer_files: Mapping[str, bytes] = field(default_factory=dict)
    """The content of the tokenizer's files, by name."""

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.meta.path

    @property
    def step(self) -> int:
        """The number of updates so far."""
        return self.meta.step

    @property
    def config(self) -> Config:
        """The settings of the training."""
        with naming_file(self.path / SETTINGS):
            return from_yaml(self.config_text)


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint completely or not at all; the checksums in its meta.json are those of the files written."""
    weights = _unshared(checkpoint.weights)
    with replacing(folder, is_folder=True) as partial:
        try:
            save_file(weights, partial / WEIGHTS)
            if checkpoint.trainer is not None:
                with (partial / TRAINER).open("wb") as file:
                    torch.save(dict(checkpoint.trainer), file)
        except (SafetensorError, RuntimeError) as error:  # how these libraries say that the disk is full
            hidden = error.__context__  # PyTorch replaces the error of the file by one that says nothing of it
            raise hidden if isinstance(hidden, OSError) else OSError(errno.EIO, str(error)) from error
        if checkpoint.trainer is not None:
            # fails now instead of on resume if an object needs pickle; tensors are mapped, not read
            torch.load(partial / TRAINER, map_location="cpu", weights_only=True, mmap=True)
        for name, content in checkpoint.tokenizer_files.items():
            (partial / name).write_bytes(content)
        (partial / SETTINGS).write_text(checkpoint.config_text, encoding="utf-8")
        meta = {"format": FORMAT, "nmt": __version__, "time": time.time(), **asdict(checkpoint.meta)}
        del meta["path"]
        meta |= {
            "valid": {name: float(value) for name, value in meta["valid"].items() if math.isfinite(value)},
            "files": {file.name: checksum(file) for file in sorted(partial.iterdir())},
        }
        sealed = meta | {"seal": seal(meta)}
        (partial / META).write_text(json.dumps(sealed, indent=2) + "\n", encoding="utf-8")


def load(path: Path, trainer: bool = False) -> Checkpoint:
    """Read a checkpoint, with its training state if `trainer`, after verifying the checksums of all files read."""
    meta = read_meta(path)
    if trainer and TRAINER not in meta.files:
        raise UserError(
            f"{path} contains only weights, so training cannot resume from it: begin a new run from its weights, with "
            "another name= (`nmt train --help` lists the settings)"
        )
    with _recognising_damage(path):
        for name, digest in meta.files.items():
            if name == TRAINER and not trainer:
                continue
            bring(path / name)
            if checksum(path / name) != digest:
                raise _damaged(path / name, "its checksum is not the one in meta.json")
        try:
            return Checkpoint(
                meta=meta,
                weights=load_file(path / WEIGHTS),
                trainer=torch.load(path / TRAINER, map_location="cpu", weights_only=True) if trainer else None,
                config_text=(path / SETTINGS).read_text(encoding="utf-8"),
                tokenizer_files={name: (path / name).read_bytes() for name in sorted(meta.tokenizer_files)},
            )
        except OSError:
            raise
        except Exception as error:  # neither library documents what it raises on a forged file
            raise UserError(
                f"{path} has the right checksums but cannot be loaded ({type(error).__name__}): "
                "nmt did not write it, or the memory is too small"
            ) from error


def read_meta(path: Path) -> CheckpointMeta:
    """Read a checkpoint's meta.json, which contains its own checksum."""
    file = path / META
    with _recognising_damage(path):
        text = file.read_bytes()
    try:
        content = json.loads(text)
        if content["format"] > FORMAT:
            raise UserError(
                f"{file} has format {content['format']}, written by nmt {content['nmt']}; "
                f"this is nmt {__version__}, which reads formats up to {FORMAT}: update nmt"
            )
        if content.pop("seal") != seal(content):
            raise ValueError("another seal")
        meta = record_of(CheckpointMeta, content)
        if not {WEIGHTS, SETTINGS} <= meta.files.keys() or not all(map(is_plain_name, meta.files)):
            raise ValueError("other files")
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
        raise _damaged(file, "its content is not the one that was written") from error
    return replace(meta, path=path)


def check_weights(expected: Mapping[str, torch.Size], weights: Mapping[str, Tensor], path: Path) -> None:
    """Refuse the weights of the checkpoint at `path` if their names or shapes are not those that the model expects."""
    shapes = {name: weight.shape for name, weight in weights.items()}
    for name in {**expected, **shapes}:
        if shapes.get(name) != expected.get(name):
            found, right = (str(list(each[name])) if name in each else "missing" for each in (shapes, expected))
            raise UserError(
                f"{path} is a checkpoint of another vocabulary or model shape: {name} is {found}, not {right}. "
                "Use the model and tokenizer settings it was trained with (its config.yaml), or another name="
            )


def _unshared(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights that share no memory, which safetensors requires, even if parameters are tied."""
    separate, seen = dict[str, Tensor](), set[int]()
    for name, weight in weights.items():
        tensor = weight.detach().cpu().contiguous()
        separate[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
    return separate


def _damaged(file: Path, why: str) -> DamagedError:
    if not file.parent.exists():
        return DamagedError(
            f"{file.parent} is gone: training deletes old checkpoints, so run this again, or when training is done"
        )
    return DamagedError(f"{file} is damaged ({why}): delete {file.parent} or restore it, and use another checkpoint")


@contextmanager
def _recognising_damage(path: Path) -> Iterator[None]:
    """Distinguish damaged files from those that cannot be read at the moment."""
    try:
        yield
    except OSError as error:
        if error.errno in SIGNS_OF_DAMAGE:
            raise _damaged(path / Path(error.filename or "").name, error.strerror or str(error)) from error
        raise
