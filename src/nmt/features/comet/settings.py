"""The settings of COMET."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CometEvaluation:
    """The model of COMET that scores translations."""

    comet: str = ""
    """Model of COMET: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging Face; empty for none.
    It needs the package unbabel-comet."""
