"""The settings of exports, and what translating with one asks of the others."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config.checks import check_at_least, check_choice
from nmt.config.choices import CHOICES, brings
from nmt.config.folders import folder_to_write
from nmt.errors import ConfigError
from nmt.runs.layout import EXPORTS

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """The format in which a trained model is exported."""

    target: str = "ctranslate2"
    """Format."""
    quantization: str = "float32"
    """Number format of the weights: float32, or int8 (not for huggingface)."""
    folder: str = ""
    """Destination: a new or empty folder, or one with an earlier export, which is replaced; empty is
    `<paths.outputs>/<name>/export/<target>-<quantization>`."""
    sample: int = 200
    """Number of sentences whose translations must agree before the export is complete."""
    licence: str = ""
    """Licence of the weights, such as cc-by-4.0, which the model card states."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("export.target", self.target, CHOICES["export.target"])
        check_choice("export.quantization", self.quantization, ("float32", "int8"))
        check_at_least("export.sample", self.sample, 1)
        if self.quantization == "int8" and "int8" not in brings("export.target", self.target):
            targets = " or ".join(name for name in CHOICES["export.target"] if "int8" in brings("export.target", name))
            raise ConfigError(f"export.quantization={self.quantization} needs export.target={targets}")


def export_folder(config: "Config") -> Path:
    """Return the folder of the exported model."""
    export = config.of(ExportConfig)
    if export.folder:
        return folder_to_write("export.folder", export.folder)
    return config.run_folder / EXPORTS / f"{export.target}-{export.quantization}"


def check(config: "Config") -> None:
    """Make sure that CTranslate2 can search as the settings ask."""
    if config.engine == "ctranslate2" and (names := config.decoding.torch_only):
        name = f"decoding.{names[0]}"
        raise ConfigError(f"engine=ctranslate2 has no {name}: remove {name}, or use engine=torch")
