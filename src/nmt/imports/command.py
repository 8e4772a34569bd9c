"""`nmt import`: make a run of a Marian model of Hugging Face."""

from dataclasses import asdict
from pathlib import Path

from nmt.config.folders import expanded
from nmt.config.keys import written
from nmt.config.model import ModelConfig
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.imports.marian import ImportedModel, read_marian, weights_file
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, CheckpointRecord
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.environment import environment
from nmt.runs.layout import TRAINER, RunLayout, step_folder_name
from nmt.storage.files import checksum, link, write_json, write_text
from nmt.storage.lock import exclusive_folder


def run(config: Config) -> None:
    """Write the run, and print how to use it."""
    if config.input == "-":
        raise UserError("name the folder of a model to import: nmt import input=FOLDER")
    run_folder, imported = import_model(config)
    data, tokenizer = imported.settings.data, imported.tokenizer
    parameters = sum(weight.numel() for weight in imported.weights.values())
    print(
        f"{run_folder}: {data.source_lang} to {data.target_lang}, {parameters:,} parameters, "
        f"{tokenizer.target_size:,} word pieces"
    )
    print(f"its shape: {_shape(imported.settings.model, tokenizer.joint)}")


def import_model(config: Config) -> tuple[Path, ImportedModel]:
    """Write a run with one checkpoint, which is also its averaged one; return the folder of the run, and the model."""
    folder, layout = expanded(config.input), RunLayout(config.run_folder)
    imported = read_marian(folder, config)
    origin = CheckpointRecord(folder.resolve().name, 0, sha256=checksum(weights_file(folder)), path=str(folder))
    taken = "is being written by another process: wait until it is done, or give the import another name="
    with exclusive_folder(layout.folder, taken=taken, setting="paths.outputs"):  # which a refused model does not create
        _check_unused(config, origin)
        _write(layout, imported, origin)
    return layout.folder, imported


def _check_unused(config: Config, origin: CheckpointRecord) -> None:
    """Refuse a run that has checkpoints, unless it is the same import, which may have been interrupted."""
    checkpoints = Checkpoints(config.run_folder)
    checkpoints.remove_leftovers()
    for saved in checkpoints.steps():
        is_same = saved.origin is not None and saved.origin.sha256 == origin.sha256
        if not is_same or (saved.path / TRAINER).exists():
            raise UserError(f"{config.run_folder} has checkpoints already: give the import another name=")


def _write(layout: RunLayout, imported: ImportedModel, origin: CheckpointRecord) -> None:
    text = to_yaml(imported.settings)
    write_text(layout.settings, text)
    write_json(layout.environment, environment(imported.settings, None, origin, ""))
    checkpoint = Checkpoint(
        meta=CheckpointMeta(step=origin.step, origin=origin),
        weights=imported.weights,
        config_text=text,
        tokenizer_files=imported.tokenizer.files,
    )
    Checkpoints(layout.folder).save(checkpoint)
    link(layout.averaged, step_folder_name(origin.step))


def _shape(model: ModelConfig, joint: bool) -> str:
    """Return the settings of the model that are not the defaults, as they are written on the command line."""
    usual = asdict(ModelConfig())
    changed = {name: value for name, value in asdict(model).items() if value != usual[name]}
    return " ".join(
        [f"tokenizer.joint={written(joint)}", *(f"model.{name}={written(changed[name])}" for name in changed)]
    )
