"""What a feature declares: the whole interface between the core and features.

A feature adds to the core without being known to it: the core asks `nmt.discovery.features()` for what all of them
declare. A declaration names code as `module:name`, which is imported when it is first used, so that listing the
features, checking settings and printing help import neither torch nor any optional package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a feature adds to the core."""

    summary: str
    """A few words for the help."""
    columns: tuple[str, ...] = ()
    """Values beside the two sides of the training text, each a `nmt.data.columns.Column`."""

    def __post_init__(self) -> None:
        """Check that each field holds what the core iterates over, because types are not checked at run time."""
        for each in fields(self):
            kind = Mapping if each.default_factory is dict else type(each.default) if each.default == () else str
            if not isinstance(given := getattr(self, each.name), kind):
                raise TypeError(f"{each.name} of a Feature is a {kind.__name__}, not {given!r}")
