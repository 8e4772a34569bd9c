"""The interface of import formats."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from nmt.config.schema import Config
from nmt.text.tokenizer import Tokenizer

FETCH_AGAIN = "Fetch it again."
"""What to do about a damaged file of somebody else's model."""


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model that was read from files of another format."""

    settings: Config
    """The settings of the run that it becomes."""
    weights: dict[str, Tensor]
    """The parameters under our names."""
    tokenizer: Tokenizer
    step: int = 0
    """The number of updates, if the files say so."""


class Importer(Protocol):
    """A format to import. To add one, write a class like this and register it in `IMPORTERS`."""

    files: str
    """The files by which a folder of this format is recognised, for an error message."""

    def recognises(self, folder: Path) -> bool:
        """Return whether a folder has this format."""
        ...

    def read(self, folder: Path, settings: Config) -> ImportedModel:
        """Read the model in a folder; `settings` are those of the run that it becomes."""
        ...

    def weights_file(self, folder: Path) -> Path:
        """Return the file of the weights, whose checksum identifies the model."""
        ...
