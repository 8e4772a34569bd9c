"""Run a command in local copies of its folders if paths.data or paths.outputs are addresses."""

from contextlib import ExitStack
from importlib import import_module

from nmt.commands import Command
from nmt.config.folders import is_address
from nmt.config.tree import Config
from nmt.data.manifest import MANIFEST
from nmt.launched import is_main_process
from nmt.runs.layout import CHECKPOINTS, META, TRAINER, WEIGHTS
from nmt.storage.remote import FolderCopy

HEAVY = (WEIGHTS, TRAINER)
"""Files of checkpoints that are fetched only for commands that load them."""


def run_command(command: Command, config: Config) -> None:
    """Run a command; fetch what it needs from addresses before it, and store what it has changed there."""
    with ExitStack() as stack:
        if is_address(config.paths.data) and command.corpus:
            address = f"{config.paths.data.rstrip('/')}/{config.data.corpus}"
            corpus = FolderCopy(address, config.data_folder, "paths.data", MANIFEST)
            corpus.fetch()
            if is_main_process() and command.prepares:
                stack.enter_context(corpus.storing())
        if is_address(config.paths.outputs) and command.weights != "none":
            address = f"{config.paths.outputs.rstrip('/')}/{config.name}"
            run = FolderCopy(address, config.run_folder, "paths.outputs", META)
            run.fetch(HEAVY, lambda: _needed_files(command, config))
            if is_main_process():
                stack.enter_context(run.storing())
        import_module(command.module).run(config)


def _needed_files(command: Command, config: Config) -> set[str]:
    """Return the names of the heavy files that a command loads, given the records of the run's checkpoints."""
    from nmt.runs.checkpoints import Checkpoints, find_folder  # noqa: PLC0415 - imports torch

    saved = Checkpoints(config.run_folder).steps()
    if command.weights == "newest":
        return {f"{CHECKPOINTS}/{each.path.name}/{file}" for each in saved[-1:] for file in HEAVY}
    named = (find_folder(config.run_folder, name, saved) for name in (config.checkpoint, *config.decoding.ensemble))
    folders = [each.path for each in saved] if command.weights == "all" else filter(None, named)
    return {f"{CHECKPOINTS}/{folder.name}/{WEIGHTS}" for folder in folders}
