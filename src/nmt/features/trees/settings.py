"""The setting of the search for trees."""

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from nmt.config.checks import CONTROL, ONLY_TORCH
from nmt.config.schema.data import TREES
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class TreeDecoding:
    """Whether only trees are searched."""

    well_formed: bool = field(default=False, metadata=ONLY_TORCH)
    """Trees only: search only well-formed trees over the words of the sentence."""

    def __post_init__(self) -> None:
        """Refuse other controls, which know nothing of brackets."""
        others = [each for each in fields(self) if each.metadata.keys() & CONTROL.keys()]
        used = [each.name for each in others if getattr(self, each.name) != each.default]
        if self.well_formed and used:
            raise ConfigError(
                f"decoding.well_formed=true cannot be used with decoding.{used[0]}: remove one of the two"
            )


def check(config: "Config") -> None:
    """Make sure that the target side is trees."""
    if config.of(TreeDecoding).well_formed and config.data.target_lang != TREES:
        raise ConfigError(f"decoding.well_formed=true needs data.target_lang={TREES}")
