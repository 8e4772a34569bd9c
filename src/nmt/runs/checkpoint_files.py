"""One checkpoint: a folder of weights, trainer state, tokenizer, settings, and checksums of it all."""

import errno
import json
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from nmt import __version__
from nmt.errors import UserError
from nmt.storage.files import checksum, is_plain_name, replacing_folder, seal

FORMAT = 1
"""Version of the layout; raised by a change that older code cannot read."""
WEIGHTS, TRAINER, SETTINGS, META = "model.safetensors", "trainer.pt", "config.yaml", "meta.json"
STEP_FOLDER = re.compile(r"step-([0-9]{8,})")


class DamagedError(UserError):
    """A checkpoint that is not what was written; another one may still be whole."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint in memory."""

    path: Path
    """Its folder."""
    step: int
    """Updates made so far."""
    weights: dict[str, Tensor]
    """The model's parameters by name, on the CPU."""
    trainer: dict[str, Any] | None
    """What training needs besides to go on; None where it was not asked for."""
    config_text: str
    """The settings it was trained with, as YAML."""
    meta: Mapping[str, Any]
    """The content of meta.json."""

    @property
    def files(self) -> list[Path]:
        """Its files as its meta.json lists them, and that itself; without the state of training."""
        return [self.path / name for name in sorted({META, *self.meta["files"]} - {TRAINER})]

    @property
    def tokenizer_folder(self) -> Path:
        """Where its tokenizer lies."""
        return self.path

    @property
    def tokenizer_files(self) -> list[Path]:
        """The files of its tokenizer."""
        return [self.path / name for name in sorted(tokenizer_checksums(self.meta))]


def step_folder_name(step: int) -> str:
    """Name of the folder of a step's checkpoint."""
    return f"step-{step:08d}"


def tokenizer_checksums(meta: Mapping[str, Any]) -> dict[str, str]:
    """The checksums of a checkpoint's tokenizer files, by name."""
    return {name: digest for name, digest in meta["files"].items() if name.startswith("tokenizer")}


def write(
    folder: Path,
    *,
    step: int,
    weights: Mapping[str, Tensor],
    trainer: Mapping[str, Any] | None,
    tokenizer_files: Sequence[Path],
    config_text: str,
    valid: Mapping[str, float],
    **more: Any,
) -> None:
    """Write a checkpoint, whole or not at all; `more` goes into meta.json."""
    with replacing_folder(folder) as partial, _torch_errors_as_disk_errors():
        save_file(_separate(weights), partial / WEIGHTS)
        if trainer is not None:
            _save_trainer(trainer, partial / TRAINER)
        for file in tokenizer_files:
            shutil.copyfile(file, partial / file.name)
        (partial / SETTINGS).write_text(config_text, encoding="utf-8")
        meta = {
            "format": FORMAT,
            "nmt": __version__,
            "step": step,
            "time": time.time(),
            "valid": {name: float(value) for name, value in valid.items() if math.isfinite(value)},
            **more,
            "files": {file.name: checksum(file) for file in sorted(partial.iterdir())},
        }
        sealed = meta | {"seal": seal(meta)}
        (partial / META).write_text(json.dumps(sealed, indent=2) + "\n", encoding="utf-8")


def load(path: Path, trainer: bool = False) -> Checkpoint:
    """Read a checkpoint once the checksums of all that is read have been verified.

    Args:
        path: Its folder.
        trainer: Whether to read what training needs to go on, too.
    """
    meta = read_meta(path)
    if trainer and TRAINER not in meta["files"]:
        raise UserError(
            f"{path} holds weights alone, so training cannot go on from it: use a checkpoint of `make train` instead"
        )
    with _explaining_read_errors(path):
        for name, digest in meta["files"].items():
            if (trainer or name != TRAINER) and checksum(path / name) != digest:
                raise _damaged(path / name, "its checksum is not the one in meta.json")
        try:
            return Checkpoint(
                path=path,
                step=meta["step"],
                weights=load_file(path / WEIGHTS),
                trainer=_load_trainer(path / TRAINER) if trainer else None,
                config_text=(path / SETTINGS).read_text(encoding="utf-8"),
                meta=meta,
            )
        except OSError:
            raise
        except Exception as error:  # neither library says what it raises on a file that was forged
            reason = str(error).strip().partition("\n")[0]
            raise UserError(
                f"{path} has the right checksums but cannot be loaded ({reason}): "
                "nmt did not write it, or the memory is too small"
            ) from error


def _load_trainer(path: Path) -> dict[str, Any]:
    trainer = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(trainer, dict):
        raise TypeError(f"{path.name} holds no names")
    return trainer


def read_meta(path: Path) -> dict[str, Any]:
    """Read a checkpoint's meta.json, which tells by itself whether it is what was written."""
    file = path / META
    with _explaining_read_errors(path):
        content = file.read_bytes()
    try:
        meta = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(file, "it is not JSON") from error
    if not isinstance(meta, dict) or not isinstance(meta.get("format"), int):
        raise _damaged(file, "it names no format")
    if meta["format"] < 1:
        raise UserError(f"{file} has format {meta['format']}, which is no format of nmt: restore it or delete it")
    if meta["format"] > FORMAT:
        raise UserError(
            f"{file} has format {meta['format']}, written by nmt {meta.get('nmt')}; "
            f"this is nmt {__version__}, which reads formats up to {FORMAT}: update nmt"
        )
    if meta.pop("seal", None) != seal(meta) or not _is_complete(meta):
        raise _damaged(file, "its content is not the one that was written")
    named = STEP_FOLDER.fullmatch(path.name)
    if named and int(named[1]) != meta["step"]:
        raise _damaged(file, f"it belongs to step {meta['step']}, not to this folder")
    return meta


def check_weights(expected: Mapping[str, torch.Size], weights: Mapping[str, Tensor], path: Path) -> None:
    """Make sure that a checkpoint's weights are those of the model they are meant for.

    Args:
        expected: The model's parameters: name and shape.
        weights: What the checkpoint holds.
        path: The checkpoint, to be named in the error.
    """
    faults = [f"{name} is missing" for name in expected if name not in weights]
    faults += [f"{name} is not in the model" for name in weights if name not in expected]
    faults += [
        f"{name} is {list(weights[name].shape)} where the model has {list(shape)}"
        for name, shape in expected.items()
        if name in weights and weights[name].shape != shape
    ]
    if faults:
        shown = "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else "")
        raise UserError(
            f"{path} is a checkpoint of another vocabulary or model shape: {shown}. "
            "Use the model and tokenizer settings it was trained with (its config.yaml), or another name="
        )


def _separate(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give each name memory of its own, as safetensors demands, also where parameters are tied."""
    separate: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, weight in weights.items():
        tensor = weight.detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        whole = storage.nbytes() == tensor.nbytes and storage.data_ptr() not in seen
        separate[name] = tensor if whole else tensor.clone()
        seen.add(storage.data_ptr())
    return separate


def _save_trainer(trainer: Mapping[str, Any], path: Path) -> None:
    torch.save(dict(trainer), path)
    # Fails now, not at the resume, on an object that only pickle could bring back; tensors are mapped, not read.
    torch.load(path, map_location="cpu", weights_only=True, mmap=True)


def _is_complete(meta: Mapping[str, Any]) -> bool:
    files = meta.get("files")
    return (
        isinstance(meta.get("step"), int)
        and isinstance(meta.get("valid"), dict)
        and all(isinstance(value, int | float) for value in meta["valid"].values())
        and isinstance(meta.get("best_by", "loss"), str)
        and isinstance(files, dict)
        and all(map(is_plain_name, files))
        and {WEIGHTS, SETTINGS} <= files.keys()
    )


def _damaged(file: Path, why: str) -> DamagedError:
    return DamagedError(f"{file} is damaged ({why}): delete {file.parent} or restore it, and use another checkpoint")


@contextmanager
def _torch_errors_as_disk_errors() -> Iterator[None]:
    """Both libraries report a full disk as errors of their own."""
    try:
        yield
    except SafetensorError as error:
        raise OSError(str(error)) from error
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "unexpected pos" not in str(error):
            raise
        raise OSError(str(error).splitlines()[0]) from error


@contextmanager
def _explaining_read_errors(path: Path) -> Iterator[None]:
    """Tell what is missing or unreadable for good from what may be read another time."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise _damaged(path / Path(error.filename or "").name, "it is missing") from error
    except OSError as error:
        if error.errno == errno.EIO:
            raise _damaged(path / Path(error.filename or "").name, "the disk cannot read it") from error
        raise UserError(
            f"cannot read {error.filename or path}: {error.strerror}. Look at its owner and mode"
        ) from error
