"""CTranslate2, and the model itself in int8, as choices of `engine`."""

from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config.schema import Config
from nmt.decoding.engines import EngineKind
from nmt.features.exports.settings import export_folder, exports_of

if TYPE_CHECKING:
    from nmt.compute.machine import Machine
    from nmt.decoding.loaded_model import LoadedModel


class CTranslate2(EngineKind):
    """Translates with the model that `nmt export` wrote."""

    repeats_samples = False

    def load(self, config: Config, machine: "Machine") -> "LoadedModel":
        """See `EngineKind.load`."""
        from nmt.features.exports.loading import load_export  # noqa: PLC0415

        return load_export(export_folder(config), machine, config.decoding, config.seed)

    def open(self, folder: Path, machine: "Machine") -> "LoadedModel | None":
        """See `EngineKind.open`."""
        from nmt.features.exports.loading import is_export, load_export  # noqa: PLC0415

        return load_export(folder, machine) if is_export(folder) else None

    def preferred(self, config: Config, machine: "Machine") -> Config | None:
        """See `EngineKind.preferred`."""
        from nmt.features.exports.choose_engine import fast_export  # noqa: PLC0415

        return fast_export(config, machine)

    def model_name(self, config: Config) -> str:
        """See `EngineKind.model_name`."""
        from nmt.runs.scores import path_name  # noqa: PLC0415

        return path_name(export_folder(config), exports_of(config))


class Int8(EngineKind):
    """Translates with checkpoints, with the weights of matrix products in int8."""

    shows_details = True

    def load(self, config: Config, machine: "Machine") -> "LoadedModel":
        """See `EngineKind.load`."""
        from nmt.features.exports.int8_engine import load_in_int8  # noqa: PLC0415

        return load_in_int8(config, machine)

    def preferred(self, config: Config, machine: "Machine") -> Config | None:
        """See `EngineKind.preferred`."""
        from nmt.features.exports.choose_engine import rounded_model  # noqa: PLC0415

        return rounded_model(config, machine)


CTRANSLATE2 = CTranslate2()
INT8 = Int8()
