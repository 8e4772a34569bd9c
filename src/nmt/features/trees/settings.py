"""The settings of trees: how they are written, searched and printed."""

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from nmt.config.checks import CONTROL, ONLY_TORCH, check_choice
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config

TREES = "trees"
"""The value of `data.target_lang` for sentences paired with their constituency trees."""


@dataclass(frozen=True, kw_only=True)
class TreeData:
    """How trees are written as symbols."""

    pos_tags: str = "xx"
    """Tags of words in trees: keep, or xx, which replaces all but those of punctuation by XX."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_choice("data.pos_tags", self.pos_tags, ("xx", "keep"))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseConfig:
    """What `parse` writes."""

    format: str = "bracketed"
    """bracketed (a line per tree) or drawn (as text, a line per phrase and word)."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("parse.format", self.format, ("bracketed", "drawn"))


def check(config: "Config") -> None:
    """Make sure that settings of trees come with trees as the target side."""
    target = config.data.target_lang
    if config.data.source == "trees" and target != TREES:
        raise ConfigError(f"data.source=trees needs data.target_lang={TREES}, not {target}")
    if config.of(TreeDecoding).well_formed and target != TREES:
        raise ConfigError(f"decoding.well_formed=true needs data.target_lang={TREES}")
