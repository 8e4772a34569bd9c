"""The folder that an export is written to, and read from."""

from pathlib import Path

from nmt.config.folders import folder_to_write
from nmt.config.tree import Config
from nmt.runs.layout import EXPORTS


def export_folder(config: Config) -> Path:
    """Return the folder of the exported model."""
    export = config.export
    if export.folder:
        return folder_to_write("export.folder", export.folder)
    return config.run_folder / EXPORTS / f"{export.target}-{export.quantization}"
