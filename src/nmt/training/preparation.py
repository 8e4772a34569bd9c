"""The settings of a run after a plan, and what to tell the user of it."""

import sys
from textwrap import fill
from typing import NamedTuple

from nmt.compute import distributed
from nmt.config.tree import Config

WIDTH = 120
"""The longest line, in characters."""


class Prepared(NamedTuple):
    """The settings of a run, and what to tell the user."""

    config: Config
    message: str = ""
    """What to tell the user; empty if there is nothing to say."""
    warning: str = ""
    """Another line, for standard error."""

    def announce(self) -> None:
        """Print the lines, on the first process only."""
        if distributed.is_main():
            if self.message:
                text = fill(self.message, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
                print(text, flush=True)
            if self.warning:
                print(f"warning: {self.warning}", file=sys.stderr, flush=True)
