"""What a checkpoint is: weights, training state, tokenizer and settings; and its files, with checksums of them all."""

import errno
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from nmt import __version__
from nmt.errors import UserError
from nmt.runs.layout import META, SETTINGS, TRAINER, WEIGHTS, step_of_folder_name
from nmt.storage.files import checksum, is_plain_name, record_of, replacing_folder, seal
from nmt.text.tokenizer import Tokenizer

FORMAT = 1
"""The version of the format; it is raised by a change that older versions of nmt cannot read."""
SIGNS_OF_DISK_ERRORS = ("PytorchStreamWriter", "unexpected pos", "iostream error")
"""Parts of the messages of torch's RuntimeErrors when a write or the end of a file fails."""


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

    @property
    def summary(self) -> str:
        """The name and step in a few words, without the folder, which may be private."""
        return f"{PurePath(self.name).name}, step {self.step:,}"

    def to_json(self) -> dict[str, object]:
        """Return the record as JSON holds it, without the fields that are empty."""
        fields = asdict(replace(self, ensemble=())) | {"ensemble": [member.to_json() for member in self.ensemble]}
        return {key: value for key, value in fields.items() if value or key == "step"}


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

    def tokenizer(self) -> Tokenizer:
        """Load its tokenizer."""
        return Tokenizer.load(self.path, "restore the checkpoint, or use another one")


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint completely or not at all; the checksums in its meta.json are those of the files written."""
    with replacing_folder(folder) as partial, _torch_errors_as_disk_errors():
        save_file(_unshared(checkpoint.weights), partial / WEIGHTS)
        if checkpoint.trainer is not None:
            torch.save(dict(checkpoint.trainer), partial / TRAINER)
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
    """Read a checkpoint after verifying the checksums of all files that are read.

    Args:
        path: The folder of the checkpoint.
        trainer: Whether to read the training state, too.
    """
    meta = read_meta(path)
    if trainer and TRAINER not in meta.files:
        raise UserError(
            f"{path} contains only weights, so training cannot resume from it: begin a new run from its weights, with "
            "another name= (`nmt train --help` lists the settings)"
        )
    with _explaining_read_errors(path):
        for name, digest in meta.files.items():
            if (trainer or name != TRAINER) and checksum(path / name) != digest:
                raise _damaged(path / name, "its checksum is not the one in meta.json")
        try:
            return Checkpoint(
                meta=meta,
                weights=load_file(path / WEIGHTS),
                trainer=_load_trainer(path / TRAINER) if trainer else None,
                config_text=(path / SETTINGS).read_text(encoding="utf-8"),
                tokenizer_files={name: (path / name).read_bytes() for name in sorted(meta.tokenizer_files)},
            )
        except OSError:
            raise
        except Exception as error:  # neither library documents what it raises on a forged file
            reason = str(error).strip().partition("\n")[0]
            raise UserError(
                f"{path} has the right checksums but cannot be loaded ({reason}): "
                "nmt did not write it, or the memory is too small"
            ) from error


def _load_trainer(path: Path) -> dict[str, object]:
    try:
        trainer = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if "weights_only" not in str(error):
            raise
        # PyTorch advises to run what is in the file
        raise ValueError(f"{path.name} holds more than tensors, numbers and texts") from error
    if not isinstance(trainer, dict):
        raise TypeError(f"{path.name} contains no dictionary")
    return trainer


def read_meta(path: Path) -> CheckpointMeta:
    """Read a checkpoint's meta.json, which contains its own checksum."""
    file = path / META
    with _explaining_read_errors(path):
        text = file.read_bytes()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(file, "it is not JSON") from error
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise _damaged(file, "it has no format")
    if content["format"] > FORMAT:
        raise UserError(
            f"{file} has format {content['format']}, written by nmt {content.get('nmt')}; "
            f"this is nmt {__version__}, which reads formats up to {FORMAT}: update nmt"
        )
    is_sealed = content.pop("seal", None) == seal(content)
    try:
        meta = record_of(CheckpointMeta, content)
    except ValueError as error:
        raise _damaged(file, "its content is not the one that was written") from error
    if not is_sealed or not {WEIGHTS, SETTINGS} <= meta.files.keys() or not all(map(is_plain_name, meta.files)):
        raise _damaged(file, "its content is not the one that was written")
    if step_of_folder_name(path.name) not in (None, meta.step):
        raise _damaged(file, f"it belongs to step {meta.step}, not to this folder")
    return replace(meta, path=path)


def check_weights(expected: Mapping[str, torch.Size], weights: Mapping[str, Tensor], path: Path) -> None:
    """Refuse the weights of the checkpoint at `path` if their names or shapes are not those that the model expects."""
    faults = [f"{name} is missing" for name in expected if name not in weights]
    faults += [f"{name} is not in the model" for name in weights if name not in expected]
    faults += [
        f"{name} is {list(weights[name].shape)} but the model has {list(shape)}"
        for name, shape in expected.items()
        if name in weights and weights[name].shape != shape
    ]
    if faults:
        shown = "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else "")
        raise UserError(
            f"{path} is a checkpoint of another vocabulary or model shape: {shown}. "
            "Use the model and tokenizer settings it was trained with (its config.yaml), or another name="
        )


def _unshared(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights that share no memory, which safetensors requires, even if parameters are tied."""
    separate: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, weight in weights.items():
        tensor = weight.detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        whole = storage.nbytes() == tensor.nbytes and storage.data_ptr() not in seen
        separate[name] = tensor if whole else tensor.clone()
        seen.add(storage.data_ptr())
    return separate


def _damaged(file: Path, why: str) -> DamagedError:
    return DamagedError(f"{file} is damaged ({why}): delete {file.parent} or restore it, and use another checkpoint")


@contextmanager
def _torch_errors_as_disk_errors() -> Iterator[None]:
    """Convert the errors that torch and safetensors raise on a full disk."""
    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(sign in str(error) for sign in SIGNS_OF_DISK_ERRORS):
            raise
        raise OSError(errno.EIO, str(error).splitlines()[0]) from error


@contextmanager
def _explaining_read_errors(path: Path) -> Iterator[None]:
    """Distinguish damaged files from those that cannot be read at the moment."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        if not path.exists():
            raise DamagedError(
                f"{path} is not there any more; if training has removed it meanwhile, run the command again"
            ) from error
        raise _damaged(path / Path(error.filename or "").name, "it is missing") from error
    except OSError as error:
        if error.errno == errno.EIO:
            raise _damaged(path / Path(error.filename or "").name, "the disk cannot read it") from error
        raise UserError(
            f"cannot read {error.filename or path}: {error.strerror}. Look at its owner and mode"
        ) from error
