"""The export formats, by the name that `export.target` gives them."""

from collections.abc import Mapping

from nmt.config.choices import CHOICES, find
from nmt.features.exports.exporter import Exporter

EXPORTERS: Mapping[str, Exporter] = {name: find("export.target", name)() for name in CHOICES["export.target"]}
