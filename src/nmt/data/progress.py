"""Show the progress of a long task: as a bar on a terminal, else in a line about every minute."""

import sys
from typing import Any

from tqdm import tqdm

SECONDS_PER_LINE = 60


def counting_pairs(name: str, total: int | None = None) -> Any:
    """Return a bar, to be used in a `with` statement, whose `update` takes numbers of pairs that are done."""
    pause = 0.1 if sys.stderr.isatty() else SECONDS_PER_LINE
    return tqdm(desc=name, total=total, unit=" pairs", unit_scale=True, leave=False, mininterval=pause, delay=pause)
