"""Run a command in local copies of its folders if paths.data or paths.outputs are addresses."""

from contextlib import ExitStack
from importlib import import_module

from nmt.commands import Command
from nmt.config.folders import is_address
from nmt.config.tree import Config
from nmt.data.manifest import MANIFEST
from nmt.launched import is_main_process
from nmt.runs.copies import fetched_run
from nmt.storage.remote import FolderCopy


def run_command(command: Command, config: Config) -> None:
    """Run a command; fetch what it needs from addresses before it, and store what it has changed there."""
    with ExitStack() as stack:
        if is_address(config.paths.data) and "corpus" in command.copies:
            address = f"{config.paths.data.rstrip('/')}/{config.data.corpus}"
            corpus = FolderCopy(address, config.data_folder, "paths.data", MANIFEST)
            corpus.fetch()
            if is_main_process() and command.prepares:
                stack.enter_context(corpus.storing())
        if is_address(config.paths.outputs) and "run" in command.copies:
            run = fetched_run(config, config.name)
            if is_main_process():
                stack.enter_context(run.storing())
        import_module(command.module).run(config)
