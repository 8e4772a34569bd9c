"""What `engine` can name: each is an `EngineKind`, which a feature adds as a choice of that setting.

Settings and folders of scores ask here, too, so nothing is imported before a model is loaded.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config.choices import CHOICES, find
from nmt.config.schema import Config

if TYPE_CHECKING:
    from nmt.compute.machine import Machine
    from nmt.decoding.loaded_model import LoadedModel


class EngineKind:
    """One engine: how its models are found, named and loaded."""

    shows_details = False
    """Whether its translations have attention, choices of words and details of features."""
    repeats_samples = True
    """Whether the samples of a sentence are the same whatever was translated before it."""

    def load(self, config: Config, machine: "Machine") -> "LoadedModel":
        """Load the model that the settings name."""
        raise NotImplementedError

    def open(self, folder: Path, machine: "Machine") -> "LoadedModel | None":
        """Load the model in a folder, with the search of its run; None if it is no model for this engine."""
        return None

    def preferred(self, config: Config, machine: "Machine") -> Config | None:
        """Return the settings with which this engine translates faster than torch and as well, or None; say so."""
        return None

    def model_name(self, config: Config) -> str:
        """Return the name of the model that the settings name; empty if checkpoints translate."""
        return ""


class Torch(EngineKind):
    """The model itself: checkpoints, alone or as an ensemble."""

    shows_details = True

    def load(self, config: Config, machine: "Machine") -> "LoadedModel":
        """See `EngineKind.load`."""
        from nmt.decoding.load_engine import load_checkpoints  # noqa: PLC0415

        return load_checkpoints(config, machine)


TORCH = Torch()


def engine_kind(config: Config) -> EngineKind:
    """Return the engine that the settings name."""
    kind: EngineKind = find("engine", config.engine_name)
    return kind


def engine_kinds() -> list[EngineKind]:
    """Return all engines."""
    return [find("engine", name) for name in CHOICES["engine"]]


def choose_engine(config: Config, machine: "Machine", *, with_details: bool = False) -> Config:
    """Return the settings with `engine=auto` decided, by engines that show details if these are wanted."""
    if config.engine != "auto":
        return config
    kinds = [kind for kind in engine_kinds() if kind.shows_details or not with_details]
    chosen = (kind.preferred(config, machine) for kind in kinds)
    return next(filter(None, chosen), replace(config, engine="torch"))
