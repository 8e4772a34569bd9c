"""Make a run of a model in another format."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nmt.config.folders import expanded
from nmt.config.saved import to_yaml
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.imports.importer import ImportedModel, Importer
from nmt.features.imports.registry import IMPORTERS
from nmt.features.imports.settings import ImportedFolder, ImportingConfig
from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.environment import environment
from nmt.runs.layout import TRAINER, RunLayout, step_folder_name
from nmt.storage.files import checksum, link, write_json, write_text
from nmt.storage.lock import exclusive_folder


def import_folder(config: Config) -> tuple[Path, ImportedModel]:
    """Write a run with one checkpoint, which is also its averaged one; return the folder of the run, and the model."""
    folder, layout = expanded(config.of(ImportedFolder).source), RunLayout(config.run_folder)
    importer = _importer(folder)
    taken = "is being written by another process: wait until it is done, or give the import another name="
    weights = _checksum(importer.weights_file(folder))
    imported = _in_languages(importer.read(folder, config), config.of(ImportingConfig).languages)
    with exclusive_folder(layout.folder, taken=taken, setting="paths.outputs"):  # which a refused model does not create
        _check_unused(config, weights)
        name = folder.resolve().name
        _write(config, imported, CheckpointRecord(name, imported.step, sha256=weights, path=str(folder)))
    return layout.folder, imported


def _in_languages(imported: ImportedModel, languages: Sequence[str]) -> ImportedModel:
    """Return a model with the languages that the user names, if any, in place of those that its files name."""
    if not languages:
        return imported
    source, target = languages
    data = replace(imported.settings.data, source_lang=source, target_lang=target)
    return replace(imported, settings=replace(imported.settings, data=data))


def _importer(folder: Path) -> Importer:
    for importer in IMPORTERS:
        if importer.recognises(folder):
            return importer
    files = " or ".join(importer.files for importer in IMPORTERS)
    raise UserError(f"source={folder} is no model that can be imported: it has no {files}")


def _checksum(file: Path) -> str:
    try:
        return checksum(file)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}. Fetch all files of the model") from error


def _check_unused(config: Config, weights: str) -> None:
    """Refuse a run that has checkpoints, unless it is the same import, which may have been interrupted."""
    checkpoints = Checkpoints(config.run_folder)
    checkpoints.remove_leftovers()
    for saved in checkpoints.steps():
        if (read_meta(saved.path).origin or {}).get("sha256") != weights or (saved.path / TRAINER).exists():
            raise UserError(f"{config.run_folder} has checkpoints already: give the import another name=")


def _write(config: Config, imported: ImportedModel, origin: CheckpointRecord) -> None:
    layout, text = RunLayout(config.run_folder), to_yaml(imported.settings)
    write_text(layout.settings, text)
    described = environment(imported.settings, layout.folder / "no-data", origin.to_json())
    write_json(layout.environment, described.to_json())
    Checkpoints(config.run_folder).save(
        imported.step,
        weights=imported.weights,
        trainer=None,
        valid={},
        tokenizer_files=imported.tokenizer.files,
        config_text=text,
        origin=origin.to_json(),
    )
    link(layout.averaged, step_folder_name(imported.step))
