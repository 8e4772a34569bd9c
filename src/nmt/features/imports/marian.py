"""Import Marian's own format, of which only the exports of this project say everything that a run needs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config.saved import from_yaml
from nmt.config.schema import Config, ModelConfig
from nmt.errors import UserError
from nmt.features.imports.importer import ImportedModel
from nmt.marian.files import DAMAGED, NPZ, read_npz
from nmt.marian.vocabularies import read_vocabularies
from nmt.marian.weights import from_marian
from nmt.model.build import build_model
from nmt.runs.layout import SETTINGS
from nmt.text.tokenizer import Tokenizer


class MarianImporter:
    """Reads the weights in float32, the vocabularies and the settings of an export for Marian."""

    files = NPZ

    def recognises(self, folder: Path) -> bool:
        """See `Importer.recognises`."""
        return (folder / NPZ).is_file()

    def read(self, folder: Path, settings: Config) -> ImportedModel:
        """See `Importer.read`."""
        exported = folder / SETTINGS
        if not exported.is_file():
            raise UserError(
                f"{folder} has no {SETTINGS}, so it is no export of this project: other models in Marian's own format "
                "cannot be imported; convert them to Hugging Face's format first"
            )
        saved = from_yaml(exported.read_text(encoding="utf-8", errors="replace"))
        tokenizer = Tokenizer(*read_vocabularies(folder), name=str(folder))
        weights = _weights(folder / NPZ, saved.model, tokenizer)
        return ImportedModel(replace(saved, name=settings.name, paths=settings.paths), weights, tokenizer)

    def weights_file(self, folder: Path) -> Path:
        """See `Importer.weights_file`."""
        return folder / NPZ


def _weights(file: Path, config: ModelConfig, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Return the weights under our names; refuse those of another model than the settings describe."""
    words = tokenizer.source_size, tokenizer.target_size
    try:
        found = from_marian(config, _arrays(file), words)
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{file} does not hold the model of {SETTINGS} ({error}): copy the export again") from error
    with torch.device("meta"):
        expected = build_model(config, *words).state_dict()
    kinds = {name: (weight.shape, weight.dtype) for name, weight in found.items()}
    for name, weight in expected.items():
        if kinds.get(name) != (weight.shape, weight.dtype):
            raise UserError(f"{file} does not hold the {name} that {SETTINGS} describes: copy the export again")
    return found


def _arrays(file: Path) -> dict[str, Any]:
    """Return the arrays of a file, which may be forged: nothing in it is run."""
    try:
        return read_npz(file)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror or error}") from error
    except DAMAGED as error:
        raise UserError(f"{file} is damaged ({error}): copy the export again") from error
