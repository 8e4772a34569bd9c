"""`nmt all`: run the whole chain, from text to scores."""

import time

from nmt.commands import COMMANDS
from nmt.commands.local_copies import run_command
from nmt.config.tree import Config
from nmt.evaluation.bleu import check_tokenizers
from nmt.launched import is_main_process, launched_processes

CHAIN = ("data", "train", "average", "eval", "report")
"""The commands, in turn."""


def run(config: Config) -> None:
    """Run one command after the other."""
    run_chain(config)


def run_chain(config: Config) -> dict[str, float]:
    """Run one command after the other, and return the seconds that each took."""
    if is_main_process():
        check_tokenizers(config, config.evaluation.splits)  # before hours of preparation
    seconds = {}
    for name in CHAIN:
        if name == "eval" and launched_processes() > 1:
            _wait_for_average(config)
        started = time.monotonic()
        # the lock of a corpus lets one process prepare it, however long it takes
        if COMMANDS[name].distributed or COMMANDS[name].prepares or is_main_process():
            run_command(COMMANDS[name], config)
        seconds[name] = time.monotonic() - started
    return seconds


def _wait_for_average(config: Config) -> None:
    """Wait until the main process has written the average, which all processes load."""
    from nmt.compute import distributed  # noqa: PLC0415 - they import torch, which `nmt data` does without

    with distributed.session(config.runtime):
        distributed.barrier()
