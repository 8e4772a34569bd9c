"""The setting of `init`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InitConfig:
    """What `init` writes."""

    folder: str = "."
    """Folder of the project, which may exist; no file in it is replaced."""
