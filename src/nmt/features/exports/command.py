"""`nmt export`: convert a trained model for other programs, and check that it translates the same."""

from dataclasses import replace

from nmt.compute.machine import prepare_machine
from nmt.config.schema import Config
from nmt.features.exports.export_checkpoint import export_checkpoint
from nmt.features.exports.settings import export_folder
from nmt.features.exports.sizes import sizes_in_words


def run(config: Config) -> None:
    """Export the checkpoint and print how it compares with the model."""
    prepare_machine(replace(config.runtime, device="cpu"))
    record = export_checkpoint(config)
    folder = export_folder(config)
    print(f"{folder}: {sizes_in_words(folder)}\n{folder}: {record.verified.summary}")
