"""How long this process has been running."""

import os
import time
from pathlib import Path

_IMPORTED = time.monotonic()
"""The time when this module was imported, used if the system does not give the start time of the process.

The command line imports this module first, so the difference is small.
"""
STAT = Path("/proc/self/stat")


def uptime() -> float:
    """Return the seconds since this process was started, including the time that Python took to start."""
    try:
        # the second field, the program's name, may itself hold spaces and parentheses
        ticks = int(STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # only Linux has these
        return time.monotonic() - _IMPORTED
