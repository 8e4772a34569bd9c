"""`nmt import`: make a run of a Marian model of Hugging Face."""

from nmt.config.folders import expanded
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.imports.marian import read_marian, weights_file
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, CheckpointRecord, write
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.environment import environment
from nmt.runs.layout import RunLayout
from nmt.storage.files import checksum, exclusive_folder, write_json, write_text
from nmt.text.lines import STANDARD


def run(config: Config) -> None:
    """Write a run with one checkpoint, which is also its averaged one, and print what it is."""
    if config.input == STANDARD:
        raise UserError("name the folder of a model to import: nmt import input=FOLDER")
    folder, layout = expanded(config.input), RunLayout(config.run_folder)
    settings, weights, tokenizer = read_marian(folder, config)
    origin = CheckpointRecord(folder.resolve().name, 0, sha256=checksum(weights_file(folder)), path=str(folder))
    taken = "is being written by another process: wait until it is done, or give the import another name="
    with exclusive_folder(layout.folder, taken=taken, setting="paths.outputs"):  # which a refused model does not create
        checkpoints, text = Checkpoints(layout.folder), to_yaml(settings)
        if checkpoints.steps():
            raise UserError(f"{layout.folder} has checkpoints already: give the import another name=")
        checkpoints.remove_leftovers()
        write_text(layout.settings, text)
        write_json(layout.environment, environment(settings, None, origin, ""))
        meta = CheckpointMeta(step=origin.step, origin=origin)
        checkpoint = Checkpoint(meta=meta, weights=weights, config_text=text, tokenizer_files=tokenizer.files)
        checkpoints.save(checkpoint)
        write(layout.averaged, checkpoint)  # no link, because links are not stored at addresses
    print(
        f"{layout.folder}: {settings.data.source_lang} to {settings.data.target_lang}, "
        f"{sum(weight.numel() for weight in weights.values()):,} parameters, {tokenizer.target_size:,} word pieces"
    )
