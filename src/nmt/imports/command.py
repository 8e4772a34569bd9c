"""`nmt import`: make a run of a Marian model of Hugging Face."""

from pathlib import Path

from nmt.config.folders import expanded
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.imports.marian import ImportedModel, read_marian, weights_file
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, CheckpointRecord
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.environment import environment
from nmt.runs.layout import RunLayout, step_folder_name
from nmt.storage.files import checksum, exclusive_folder, link, write_json, write_text


def run(config: Config) -> None:
    """Write the run, and print what it is."""
    if config.input == "-":
        raise UserError("name the folder of a model to import: nmt import input=FOLDER")
    run_folder, imported = import_model(config)
    data, parameters = imported.settings.data, sum(weight.numel() for weight in imported.weights.values())
    print(
        f"{run_folder}: {data.source_lang} to {data.target_lang}, {parameters:,} parameters, "
        f"{imported.tokenizer.target_size:,} word pieces"
    )


def import_model(config: Config) -> tuple[Path, ImportedModel]:
    """Write a run with one checkpoint, which is also its averaged one; return the folder of the run, and the model."""
    folder, layout = expanded(config.input), RunLayout(config.run_folder)
    imported = read_marian(folder, config)
    origin = CheckpointRecord(folder.resolve().name, 0, sha256=checksum(weights_file(folder)), path=str(folder))
    taken = "is being written by another process: wait until it is done, or give the import another name="
    with exclusive_folder(layout.folder, taken=taken, setting="paths.outputs"):  # which a refused model does not create
        checkpoints, text = Checkpoints(layout.folder), to_yaml(imported.settings)
        if checkpoints.steps():
            raise UserError(f"{layout.folder} has checkpoints already: give the import another name=")
        checkpoints.remove_leftovers()
        write_text(layout.settings, text)
        write_json(layout.environment, environment(imported.settings, None, origin, ""))
        checkpoint = Checkpoint(
            meta=CheckpointMeta(step=origin.step, origin=origin),
            weights=imported.weights,
            config_text=text,
            tokenizer_files=imported.tokenizer.files,
        )
        checkpoints.save(checkpoint)
        link(layout.averaged, step_folder_name(origin.step))
    return layout.folder, imported
