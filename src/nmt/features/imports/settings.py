"""The settings of `import`."""

from dataclasses import dataclass, field

from nmt.config.checks import ADJUSTABLE
from nmt.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ImportedFolder:
    """The model to import."""

    source: str = field(default="", metadata=ADJUSTABLE)
    """Folder of a model to import: Hugging Face's Marian format, or an export of this project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportingConfig:
    """What `import` should know besides `source`."""

    languages: list[str] = field(default_factory=list)
    """Source and target language; empty for those that the files name."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.languages and len(self.languages) != 2:
            raise ConfigError(f"importing.languages=[{','.join(self.languages)}] must name two languages, source first")
