"""What a stage translates with, as the settings say: a checkpoint, several, or an export."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from nmt.compute.machine import Machine
from nmt.config.compose import from_yaml
from nmt.config.schema import Config
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.checkpoints import Checkpoint, load, resolve
from nmt.runs.export_record import EXPORT_RECORD, read_export_record


class LoadedEngine(NamedTuple):
    """An engine and where it came from."""

    engine: Engine
    path: Path
    languages: tuple[str, str]
    """Source and target of the model."""
    files: list[Path]
    """The files of the checkpoint or the export, without the state of training."""
    checkpoint: CheckpointRecord
    """The checkpoint that was loaded, or that the export was made from."""


def load_engine(config: Config, machine: Machine) -> LoadedEngine:
    """Load what `engine`, `checkpoint` and `decoding.ensemble` name."""
    return _load_export(config, machine) if config.engine == "ctranslate2" else _load_checkpoints(config, machine)


def describe_checkpoint(checkpoint: Checkpoint) -> CheckpointRecord:
    """Return the facts by which the same weights are found again."""
    return CheckpointRecord(
        name=checkpoint.path.name,
        path=str(checkpoint.path),
        step=checkpoint.step,
        sha256=checkpoint.meta["files"]["model.safetensors"],
        averaged_from=tuple(checkpoint.meta.get("averaged_from", ())),
    )


def check_languages(loaded: LoadedEngine, config: Config) -> None:
    """Refuse to translate what the model was not trained for."""
    pairs = ["-".join(each) for each in (loaded.languages, (config.data.source_lang, config.data.target_lang))]
    if pairs[0] != pairs[1]:
        raise UserError(
            f"{loaded.path} translates {pairs[0]}, but the settings say {pairs[1]}: "
            "use the experiment= that it was trained with, or set data.source_lang and data.target_lang"
        )


def _load_checkpoints(config: Config, machine: Machine) -> LoadedEngine:
    names = [config.checkpoint, *config.decoding.ensemble]
    checkpoints = [load(resolve(config.run_folder, name)) for name in names]
    trained = [from_yaml(checkpoint.config_text) for checkpoint in checkpoints]
    loaded = [
        load_model(checkpoint, each.model, machine.device)
        for checkpoint, each in zip(checkpoints, trained, strict=True)
    ]
    tokenizers = [tokenizer for _, tokenizer in loaded]
    _check_one_vocabulary(checkpoints, [tokenizer.checksum for tokenizer in tokenizers])
    engine = TorchEngine([model for model, _ in loaded], tokenizers[0], config.decoding, *machine, seed=config.seed)
    first, *members = checkpoints
    record = replace(describe_checkpoint(first), ensemble=tuple(map(describe_checkpoint, members)))
    data = trained[0].data
    return LoadedEngine(engine, first.path, (data.source_lang, data.target_lang), first.files, record)


def _check_one_vocabulary(checkpoints: Sequence[Checkpoint], checksums: Sequence[str]) -> None:
    for checkpoint, digest in zip(checkpoints, checksums, strict=True):
        if digest != checksums[0]:
            raise UserError(
                f"{checkpoint.path} has another tokenizer than {checkpoints[0].path}: "
                "an ensemble needs models of one vocabulary"
            )


def _load_export(config: Config, machine: Machine) -> LoadedEngine:
    folder = config.export_folder
    if not (folder / EXPORT_RECORD).is_file():
        raise UserError(f"there is no export in {folder}: run `make export` first (with the same ARGS)")
    record = read_export_record(folder)
    if record.target != "ctranslate2":
        raise UserError(f"{folder} is an export for {record.target}: engine=ctranslate2 needs one for ctranslate2")
    engine = CTranslate2Engine(
        folder,
        config.decoding,
        machine.device,
        torch.get_num_threads(),
        seed=config.seed,
        longest=record.positions,
    )
    checkpoint = replace(record.checkpoint, export=str(folder), quantization=record.quantization)
    return LoadedEngine(engine, folder, record.languages, record.paths(folder), checkpoint)
