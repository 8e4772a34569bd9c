"""What a feature that watches the runs of a sweep knows of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from nmt.config.tree import Config


@dataclass(frozen=True, slots=True)
class SweptRun:
    """One of several runs by one command."""

    number: int
    """Its place in the sweep."""
    values: Mapping[str, str]
    """Its values of the settings that have several, by their names."""
    base: Config
    """The settings that these values change."""
    command: str
    """The command that does the runs."""
    outputs: str
    """The folder of all runs."""
    searching: bool
    """Whether the values of later runs depend on its result."""
