"""The setting of terms."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import CONTROL, NAMES_A_FILE, ONLY_TORCH
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import DecodingConfig


@dataclass(frozen=True, kw_only=True)
class TermsDecoding:
    """Terms and their translations."""

    terms: str = field(default="", metadata={**ONLY_TORCH, **CONTROL, **NAMES_A_FILE})
    """File with a term, a tab and its translation on each line. If a term stands in a source line, its translation
    must stand in the translation of the line."""

    def __post_init__(self) -> None:
        """Check the value."""
        if self.terms and cast("DecodingConfig", self).search.strategy != "beam":
            raise ConfigError("decoding.terms needs a beam: samples cannot have terms")


def terms_file(config: "DecodingConfig") -> str:
    """Return the file with terms; empty if there is none."""
    return cast(TermsDecoding, config).terms
