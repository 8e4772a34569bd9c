"""The settings of `synthesize`."""

from dataclasses import dataclass

from nmt.config.checks import check_between


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizeConfig:
    """What `synthesize` writes."""

    folder: str = ""
    """Destination; empty is `<paths.data>/synthetic/<name>`."""
    shard_lines: int = 5000
    """Lines per file; after an interruption, only files that are not complete are translated again."""
    only_estimate: bool = False
    """Print how long the translation takes, by translating a sample, and end."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_between("synthesize.shard_lines", self.shard_lines, 1, 10_000_000)
