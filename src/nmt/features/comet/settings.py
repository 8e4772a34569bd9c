"""The settings of COMET."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import MAY_NAME_A_FOLDER
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import DecodingConfig


@dataclass(frozen=True, kw_only=True)
class CometEvaluation:
    """The model of COMET that scores translations."""

    comet: str = ""
    """Model of COMET: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging Face; empty for none.
    It needs the package unbabel-comet."""


@dataclass(frozen=True, kw_only=True)
class CometDecoding:
    """The model of COMET by which minimum Bayes risk chooses translations."""

    comet: str = field(default="", metadata=MAY_NAME_A_FOLDER)
    """Model of COMET for `utility=comet`: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging
    Face. It needs the package unbabel-comet."""

    def __post_init__(self) -> None:
        """Make sure that the utility has a model."""
        if cast("DecodingConfig", self).utility == "comet" and not self.comet:
            raise ConfigError(
                "decoding.utility=comet needs a model: set decoding.comet to a folder or to a name such as "
                "Unbabel/wmt22-comet-da"
            )
