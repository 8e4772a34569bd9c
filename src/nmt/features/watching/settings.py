"""The settings of watching."""

from dataclasses import dataclass

from nmt.config.checks import check_at_least


@dataclass(frozen=True, kw_only=True)
class WatchConfig:
    """What is watched while several processes or GPUs train."""

    every: int = 100
    """Steps over which processes are compared with each other, at the first log line after them; 0 watches nothing."""
    slow_percent: float = 10.0
    """Name a process whose passes take this much longer per token than those of the others; 0 for none."""
    checksum_every: int = 100
    """Steps between checksums of the weights, which must be the same in all processes; 0 for none."""
    hang_seconds: float = 120.0
    """Report a step that takes longer than this, and write down what each process does; 0 for none. The run ends after
    runtime.timeout_minutes."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("every", "slow_percent", "checksum_every", "hang_seconds"):
            check_at_least(f"watch.{name}", getattr(self, name), 0)
