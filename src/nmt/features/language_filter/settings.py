"""The setting of the filter that identifies languages."""

from dataclasses import dataclass

from nmt.config.checks import check_fraction


@dataclass(frozen=True, kw_only=True)
class LanguageData:
    """How certain the languages must be."""

    min_language_probability: float = 0.0
    """Drop training pairs if a side has its language with a lower probability, according to py3langid; 0 does not
    check. About 0.1 drops other languages and keeps most sentences, but not those of one or two words, whose language
    is uncertain."""

    def __post_init__(self) -> None:
        """Check the probability."""
        check_fraction("data.min_language_probability", self.min_language_probability)
