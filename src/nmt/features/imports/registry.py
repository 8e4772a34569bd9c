"""The import formats; the first one that recognises a folder reads it."""

from collections.abc import Sequence

from nmt.features.imports.huggingface import HuggingFaceImporter
from nmt.features.imports.importer import Importer
from nmt.features.imports.marian import MarianImporter
from nmt.features.imports.safetensors import SafetensorsImporter

IMPORTERS: Sequence[Importer] = (SafetensorsImporter(), HuggingFaceImporter(), MarianImporter())
