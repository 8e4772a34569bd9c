"""The model that translates, as records describe it, and as it is sent to other machines."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from nmt.compute.machine import Machine, device_name
from nmt.config.checks import NAMES_A_FILE, marked
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.decoding.loaded_model import LoadedModel
from nmt.errors import UserError
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import TRAINER
from nmt.storage.files import checksum
from nmt.storage.remote import local_file
from nmt.synthesis.shards import InputText


class Translator(NamedTuple):
    """What translates."""

    machine: str
    """The kind of device, and its precision."""
    engine: str
    checkpoint: CheckpointRecord
    device: str
    """The name that the device gives itself."""

    @classmethod
    def of(cls, loaded: LoadedModel, machine: Machine) -> "Translator":
        """Describe a model on a machine."""
        return cls(str(machine), loaded.engine.name, loaded.checkpoint, device_name(machine.device))

    def made_with(self, config: Config, text: InputText) -> dict[str, object]:
        """Return everything on which the translations depend."""
        decoding = {
            **asdict(config.decoding),
            "ensemble": [member.sha256 for member in self.checkpoint.ensemble],
            **_checksums_of_files(config.decoding),
        }
        return {
            "input": text.checksum,
            "checkpoint": self.checkpoint.sha256,
            "quantization": self.checkpoint.quantization,
            "machine": self.machine,
            "engine": self.engine,
            "seed": config.seed,
            "synthesize.shard_lines": config.synthesize.shard_lines,
            **flatten({"decoding": decoding}),
        }


def _checksums_of_files(decoding: DecodingConfig) -> dict[str, str]:
    """Return the checksums of the files that settings name."""
    files = _files_named_by(decoding)
    return {name: checksum(files[name]) if name in files else "" for name in marked(decoding, NAMES_A_FILE)}


def _files_named_by(decoding: DecodingConfig) -> dict[str, Path]:
    """Return the files that settings name, by setting, without the settings that name none."""
    named = {name: getattr(decoding, name) for name in marked(decoding, NAMES_A_FILE)}
    return {name: local_file(file, f"decoding.{name}") for name, file in named.items() if file}


@dataclass(frozen=True, slots=True)
class PackedModel:
    """Everything that another machine needs to translate as the settings say."""

    config: Config
    folders: list[dict[str, bytes]]
    """The files of the checkpoint, and of each further member of an ensemble."""
    files: Mapping[str, tuple[str, bytes]]
    """The ending and the content of each file that a setting under `decoding.` names, by setting."""

    def unpack(self, folder: Path) -> Config:
        """Write the files to a folder; return the settings that name them there."""
        names = []
        for number, content in enumerate(self.folders):
            names.append(folder / f"model-{number}")
            names[-1].mkdir()
            for name, each in content.items():
                (names[-1] / name).write_bytes(each)
        files = {name: folder / f"{name}{ending}" for name, (ending, _) in self.files.items()}
        for name, path in files.items():
            path.write_bytes(self.files[name][1])
        checkpoint, *ensemble = map(str, names)
        named: dict[str, Any] = {name: str(path) for name, path in files.items()}
        decoding = replace(self.config.decoding, ensemble=ensemble, **named)
        return replace(self.config, checkpoint=checkpoint, decoding=decoding)


def pack(config: Config) -> PackedModel:
    """Read the model that the settings name."""
    if config.engine != "torch":
        raise UserError(f"engine={config.engine} translates on this machine only: use engine=torch on a cluster")
    folders = [resolve(config.run_folder, name) for name in (config.checkpoint, *config.decoding.ensemble)]
    content = [
        {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file() and file.name != TRAINER}
        for folder in folders
    ]
    files = {}
    for name, file in _files_named_by(config.decoding).items():
        try:
            files[name] = file.suffix, file.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read decoding.{name}={file}: {error.strerror or error}") from error
    return PackedModel(config, content, files)


def temporary_folder() -> "TemporaryDirectory[str]":
    """Return a folder that is deleted when nothing refers to it, or when the process ends."""
    return TemporaryDirectory(prefix="nmt-model-")
