"""`nmt all`: run the whole chain, from text to scores."""

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
    for name in (*CHAIN, *(name for name, command in COMMANDS.items() if command.ends_chain)):
        print(f"\n== {name} ==", flush=True)
        started = time.monotonic()
        run_command(COMMANDS[name], config)
        seconds[name] = time.monotonic() - started
    return seconds
