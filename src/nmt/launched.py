"""When this process began, and the processes that torchrun has started with it, before they have joined."""

import os
import time

STARTED = time.monotonic()
"""The time when this module was imported, which the command line does first."""


def uptime() -> float:
    """Return the seconds since this process was started."""
    return time.monotonic() - STARTED


def launched_processes() -> int:
    """Return how many they are; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def launched_rank() -> int:
    """Return which of them this one is; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))


def is_main_process() -> bool:
    """Return whether this is the first of them, which speaks for all."""
    return launched_rank() == 0
