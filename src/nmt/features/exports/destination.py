"""The folder that an export is written to, and what must not be there."""

from pathlib import Path

from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.exports.settings import export_folder
from nmt.runs.layout import EXPORT_RECORD


def destination(config: Config) -> Path:
    """Return the folder to write the export to, without links; refuse one that holds anything but an earlier export."""
    folder = export_folder(config)
    try:
        path = folder.resolve()
        if any(inside.resolve().is_relative_to(path) for inside in (config.run_folder, Path())):
            raise UserError(f"{folder} contains the run or the current folder: name another export.folder")
        if not _may_be_replaced(path):
            raise UserError(f"{folder} exists and is no export: name another export.folder")
    except (OSError, RuntimeError) as error:  # a folder that may not be read, or links in a circle
        raise UserError(f"cannot read {folder}: {error}. Name another export.folder") from error
    return path


def _may_be_replaced(path: Path) -> bool:
    """Return whether there is nothing, an empty folder, or an export."""
    if path.is_dir():
        return (path / EXPORT_RECORD).is_file() or not any(path.iterdir())
    return not path.exists()
