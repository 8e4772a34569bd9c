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
    seconds, is_together = {}, True
    for name in CHAIN:
        is_for_all = _is_for_all(name)
        if is_for_all and not is_together and launched_processes() > 1:
            _wait_for_all(config)
        is_together = is_for_all
        started = time.monotonic()
        if is_for_all or is_main_process():
            run_command(COMMANDS[name], config)
        seconds[name] = time.monotonic() - started
    return seconds


def _is_for_all(name: str) -> bool:
    """Return whether all processes run a command; the lock of a corpus lets one prepare it, however long it takes."""
    return COMMANDS[name].distributed or COMMANDS[name].prepares


def _wait_for_all(config: Config) -> None:
    """Wait until all processes are here, for a command that reads what the main one has written."""
    from nmt.compute import distributed  # noqa: PLC0415 - they import torch, which `nmt data` does without

    with distributed.session(config.runtime):
        distributed.barrier()
