"""The processes that torchrun has started with this one, before they have joined."""

import os


def launched_processes() -> int:
    """Return how many they are; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE") or "1")


def launched_rank() -> int:
    """Return which of them this one is; 0 without torchrun."""
    return int(os.environ.get("RANK") or "0")


def is_main_process() -> bool:
    """Return whether this is the first of them, which speaks for all."""
    return launched_rank() == 0
