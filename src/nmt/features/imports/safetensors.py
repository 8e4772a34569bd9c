"""Import this project's own format: a checkpoint, or an export of one as plain weights."""

from dataclasses import replace
from pathlib import Path

from nmt.config.saved import from_yaml
from nmt.config.schema import Config
from nmt.features.imports.importer import ImportedModel
from nmt.runs.checkpoint_files import load
from nmt.runs.layout import META, WEIGHTS
from nmt.text.tokenizer import Tokenizer


class SafetensorsImporter:
    """Reads weights, tokenizer and settings after verifying their checksums."""

    files = META

    def recognises(self, folder: Path) -> bool:
        """See `Importer.recognises`."""
        return (folder / META).is_file()

    def read(self, folder: Path, settings: Config) -> ImportedModel:
        """See `Importer.read`."""
        checkpoint = load(folder)
        saved = from_yaml(checkpoint.config_text)
        kept = replace(saved, name=settings.name, paths=settings.paths)
        return ImportedModel(kept, checkpoint.weights, Tokenizer.load(folder), checkpoint.step)

    def weights_file(self, folder: Path) -> Path:
        """See `Importer.weights_file`."""
        return folder / WEIGHTS
