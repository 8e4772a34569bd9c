"""Load an export for CTranslate2."""

from dataclasses import replace
from pathlib import Path

import torch

from nmt.compute.machine import Machine
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import from_yaml, read_saved
from nmt.config.tree import Config
from nmt.decoding.load import LoadedModel
from nmt.errors import UserError
from nmt.export.ctranslate2_engine import CTranslate2Engine
from nmt.export.destination import export_folder
from nmt.export.record import ExportRecord, read_export_record
from nmt.runs.layout import EXPORT_RECORD, SETTINGS


def load_named_export(config: Config, machine: Machine) -> LoadedModel:
    """Load the export that the settings name."""
    return load_export(export_folder(config), machine, config.decoding, config.seed)


def load_export(folder: Path, machine: Machine, search: DecodingConfig | None = None, seed: int = 1) -> LoadedModel:
    """Load an export for CTranslate2; without `search`, with the search of the run that it was made from."""
    record = _read_record(folder)
    engine = CTranslate2Engine(
        folder,
        search or _search_of_export(folder),
        machine.device,
        torch.get_num_threads(),
        seed=seed,
        max_positions=record.positions,
    )
    checkpoint = replace(record.checkpoint, export=str(folder), quantization=record.quantization)
    return LoadedModel(engine, folder, record.languages, checkpoint)


def _read_record(folder: Path) -> ExportRecord:
    if not (folder / EXPORT_RECORD).is_file():
        raise UserError(f"there is no export in {folder}: run `make export` first (with the same ARGS)")
    record = read_export_record(folder)
    if record.target != "ctranslate2":
        raise UserError(f"{folder} is an export for {record.target}: this needs one for ctranslate2, or the run itself")
    record.check_files(folder)
    return record


def _search_of_export(folder: Path) -> DecodingConfig:
    return read_saved(folder / SETTINGS, from_yaml).decoding.naming_no_file.for_any_engine
