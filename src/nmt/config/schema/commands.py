"""The settings that belong to one command."""

from dataclasses import dataclass

from nmt.config.checks import check_at_least, check_choice


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """What `batch` shows."""

    step: int = 1
    """Step whose sentences to show."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("batch.step", self.step, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateConfig:
    """What `translate` reads and writes besides `input` and `output`."""

    format: str = "text"
    """text, tsv (source, translation, score) or jsonl (these and the n-best list)."""
    prefix: str = ""
    """File with one line per source sentence: the beginning that its translation must have."""
    alignments: str = ""
    """File to write with one line per source sentence: the links between its words and those of its best translation,
    in Pharaoh format (0-0 1-2)."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("translate.format", self.format, ("text", "tsv", "jsonl"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfig:
    """The machine for which `describe` estimates memory and time."""

    device: str = ""
    """Type of device to estimate for (h100, a100, ...); empty is this machine."""
    gpus: int = 0
    """Number of devices to estimate for; 0 is those of this machine, or one of a named device."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_at_least("describe.gpus", self.gpus, 0)
