"""The settings that belong to one command."""

from dataclasses import dataclass

from nmt.config.checks import check_at_least, check_choice
from nmt.config.choices import CHOICES
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig:
    """The format in which a trained model is exported."""

    target: str = "ctranslate2"
    """Format."""
    quantization: str = "float32"
    """Number format of the weights: float32, or int8 (ctranslate2 only)."""
    folder: str = ""
    """Destination; empty is `<paths.outputs>/<name>/export/<target>-<quantization>`."""
    sample: int = 0
    """Number of sentences whose translations must agree before the export is complete; 0 is 100, or 1,000 for int8,
    because their BLEU decides whether `translate` uses the export."""
    licence: str = ""
    """Licence of the weights, such as cc-by-4.0, which the model card states."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("export.target", self.target, CHOICES["export.target"])
        check_choice("export.quantization", self.quantization, ("float32", "int8"))
        check_at_least("export.sample", self.sample, 0)
        if self.quantization != "float32" and self.target != "ctranslate2":
            raise ConfigError(f"export.quantization={self.quantization} needs export.target=ctranslate2")


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
class ParseConfig:
    """What `parse` writes."""

    format: str = "bracketed"
    """bracketed (a line per tree) or drawn (as text, a line per phrase and word)."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("parse.format", self.format, ("bracketed", "drawn"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfig:
    """The machine whose costs `describe` estimates, and the form of its answer."""

    device: str = ""
    """Type of device to estimate for (h100, a100, ...); empty is this machine."""
    gpus: int = 0
    """Number of devices to estimate for; 0 is those of this machine, or one of a named device."""
    format: str = "text"
    """text or json."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("describe.gpus", self.gpus, 0)
        check_choice("describe.format", self.format, ("text", "json"))
