"""What features do before a run is trained."""

import sys
from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple

from nmt.compute import distributed
from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.discovery import features

WIDTH = 120
"""The longest line, in characters."""


class Prepared(NamedTuple):
    """The settings of a run after a feature has seen them."""

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


def prepare_training(config: Config) -> tuple[Config, Sequence[Prepared]]:
    """Let each feature that asks for it change the settings of a run, in turn."""
    prepared: list[Prepared] = []
    for feature in features().values():
        if feature.prepares_training:
            prepared.append(imported(feature.prepares_training)(config))
            config = prepared[-1].config
    return config, prepared
