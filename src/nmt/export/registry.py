"""The export formats, by the name that `export.target` gives them."""

from collections.abc import Mapping

from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.exporter import Exporter
from nmt.export.huggingface import HuggingFaceExporter
from nmt.export.safetensors import SafetensorsExporter

EXPORTERS: Mapping[str, Exporter] = {
    "ctranslate2": CTranslate2Exporter(),
    "huggingface": HuggingFaceExporter(),
    "safetensors": SafetensorsExporter(),
}
