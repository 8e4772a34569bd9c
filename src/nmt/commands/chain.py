"""`nmt all`: run the whole chain, from text to scores."""

import os
import time

from nmt.commands import COMMANDS
from nmt.compute.processes import launched_processes
from nmt.config.schema import Config
from nmt.runs.local_copies import run_command

CHAIN = ("data", "train", "average", "eval")
"""The commands, in turn; after them come those of features that end the chain."""


def run(config: Config) -> None:
    """Run one command after the other."""
    run_chain(config)


def run_chain(config: Config) -> dict[str, float]:
    """Run one command after the other, and return the seconds that each took."""
    seconds = {}
    names = (*CHAIN, *(name for name, command in COMMANDS.items() if command.ends_chain))
    for name in names:
        if _is_main():
            print(f"\n== {name} ==", flush=True)
        started = time.monotonic()
        if _is_main() or _is_for_all(name):
            run_command(COMMANDS[name], config)
        if launched_processes() > 1 and not _is_for_all(name):
            _wait_for_all(config)
        seconds[name] = time.monotonic() - started
    return seconds


def _is_for_all(name: str) -> bool:
    """Return whether all processes run a command; the lock of a corpus lets one prepare it, however long it takes."""
    return COMMANDS[name].distributed or COMMANDS[name].owns == "corpus"


def _wait_for_all(config: Config) -> None:
    """Wait until all processes are here."""
    from nmt.compute import joining  # noqa: PLC0415 - imports torch, which the command before may do without

    with joining.session(config.runtime):
        pass


def _is_main() -> bool:
    return os.environ.get("RANK", "0") == "0"  # before the processes have joined
