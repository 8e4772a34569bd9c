"""`nmt export`: convert a trained model for other programs, and check that it translates the same."""

from dataclasses import replace

from nmt.compute.machine import prepare_machine
from nmt.config.schema import Config
from nmt.export.export_checkpoint import export_checkpoint


def run(config: Config) -> None:
    """Export the checkpoint and print how it compares with the model."""
    machine = prepare_machine(replace(config.runtime, device="cpu"))
    record = export_checkpoint(config, machine.precision)
    print(f"{config.export_folder}: {record.verified.summary}")
