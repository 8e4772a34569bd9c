"""The import formats; the first one that recognises a folder reads it."""

from collections.abc import Sequence

from nmt.imports.huggingface import HuggingFaceImporter
from nmt.imports.importer import Importer
from nmt.imports.safetensors import SafetensorsImporter

IMPORTERS: Sequence[Importer] = (SafetensorsImporter(), HuggingFaceImporter())
