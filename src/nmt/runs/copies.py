"""Local copies of runs, if paths.outputs is an address."""

from nmt.config.folders import is_address
from nmt.config.tree import Config
from nmt.runs.layout import META, TRAINER, WEIGHTS
from nmt.storage.files import is_plain_name
from nmt.storage.remote import FolderCopy


def fetched_run(config: Config, name: str) -> FolderCopy:
    """Fetch a run, but for the weights and training states of its checkpoints, which are fetched when they are loaded.

    Returns:
        The copy in `config.runs_folder`.
    """
    copy = FolderCopy(f"{config.paths.outputs.rstrip('/')}/{name}", config.runs_folder / name, "paths.outputs", META)
    copy.fetch(heavy=(WEIGHTS, TRAINER))
    return copy


def fetch_other_run(config: Config, name: str) -> None:
    """Fetch a run that a command reads besides its own, unless the name is a path that cannot be one of a run."""
    folder, own = config.runs_folder / name, config.run_folder
    is_apart = not (folder.is_relative_to(own) or own.is_relative_to(folder))
    if is_address(config.paths.outputs) and is_apart and all(map(is_plain_name, name.split("/"))):
        fetched_run(config, name)
