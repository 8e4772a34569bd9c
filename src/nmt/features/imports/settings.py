"""The setting of `import`."""

from dataclasses import dataclass, field

from nmt.config.checks import ADJUSTABLE


@dataclass(frozen=True, kw_only=True)
class ImportedFolder:
    """The model to import."""

    source: str = field(default="", metadata=ADJUSTABLE)
    """Folder of a model to import, in Hugging Face's Marian format."""
