"""Load the engine that the settings select: for a checkpoint, an ensemble of checkpoints, or an export."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from nmt.compute.machine import Machine
from nmt.config.saved import from_yaml
from nmt.config.schema import Config
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.checkpoints import Checkpoint, load, resolve
from nmt.runs.export_record import EXPORT_RECORD, read_export_record
from nmt.text.tokenizer import Tokenizer


class LoadedEngine(NamedTuple):
    """An engine and where it came from."""

    engine: Engine
    path: Path
    """Folder of the checkpoint or the export."""
    languages: tuple[str, str]
    """Source and target language of the model."""
    files: list[Path]
    """The files of the checkpoint or the export, without the state of training."""
    checkpoint: CheckpointRecord
    """The checkpoint that was loaded, or that the export was made from."""


def load_engine(config: Config, machine: Machine) -> LoadedEngine:
    """Load what the settings `engine`, `checkpoint` and `decoding.ensemble` name."""
    return _load_export(config, machine) if config.engine == "ctranslate2" else _load_checkpoints(config, machine)


def check_languages(loaded: LoadedEngine, config: Config) -> None:
    """Raise an error if the model was trained for other languages than the settings name."""
    model, settings = "-".join(loaded.languages), f"{config.data.source_lang}-{config.data.target_lang}"
    if model != settings:
        raise UserError(
            f"{loaded.path} translates {model}, but the settings say {settings}: "
            "use the experiment= that it was trained with, or set data.source_lang and data.target_lang"
        )


def _load_checkpoints(config: Config, machine: Machine) -> LoadedEngine:
    """Load one checkpoint, or several as an ensemble."""
    names = [config.checkpoint, *config.decoding.ensemble]
    checkpoints = [load(resolve(config.run_folder, name)) for name in names]
    settings = [from_yaml(checkpoint.config_text) for checkpoint in checkpoints]
    loaded = [
        load_model(checkpoint, each.model, machine.device)
        for checkpoint, each in zip(checkpoints, settings, strict=True)
    ]
    models, tokenizers = [model for model, _ in loaded], [tokenizer for _, tokenizer in loaded]
    _check_same_vocabulary(checkpoints, tokenizers)
    first, *others = map(CheckpointRecord.of, checkpoints)
    return LoadedEngine(
        TorchEngine(models, tokenizers[0], config.decoding, *machine, seed=config.seed),
        checkpoints[0].path,
        (settings[0].data.source_lang, settings[0].data.target_lang),
        checkpoints[0].files,
        replace(first, ensemble=tuple(others)),
    )


def _check_same_vocabulary(checkpoints: Sequence[Checkpoint], tokenizers: Sequence[Tokenizer]) -> None:
    for checkpoint, tokenizer in zip(checkpoints, tokenizers, strict=True):
        if tokenizer.checksum != tokenizers[0].checksum:
            raise UserError(
                f"{checkpoint.path} has another tokenizer than {checkpoints[0].path}: "
                "an ensemble needs models with the same vocabulary"
            )


def _load_export(config: Config, machine: Machine) -> LoadedEngine:
    """Load an export for CTranslate2."""
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
        max_positions=record.positions,
    )
    checkpoint = replace(record.checkpoint, export=str(folder), quantization=record.quantization)
    return LoadedEngine(engine, folder, record.languages, record.paths(folder), checkpoint)
