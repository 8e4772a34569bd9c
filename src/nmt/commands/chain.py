"""`nmt all`: run the whole chain, from text to scores."""

import os
import time

from nmt.commands import COMMANDS
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
    for name in filter(_runs_here, names):
        if _is_main():
            print(f"\n== {name} ==", flush=True)
        started = time.monotonic()
        run_command(COMMANDS[name], config)
        seconds[name] = time.monotonic() - started
    return seconds


def _runs_here(name: str) -> bool:
    """Return whether this one of several processes runs a command, or else waits in the next one that all run.

    Preparing a corpus may take longer than processes wait there, so all begin it, and the lock lets one do it.
    """
    command = COMMANDS[name]
    return command.distributed or command.owns == "corpus" or _is_main()


def _is_main() -> bool:
    return os.environ.get("RANK", "0") == "0"  # before the processes have joined
