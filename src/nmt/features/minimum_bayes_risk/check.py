"""The check of settings of minimum Bayes risk that depend on the target language."""

from typing import cast

from nmt.config.schema import Config
from nmt.errors import ConfigError
from nmt.features.minimum_bayes_risk.settings import STRATEGY, RiskDecoding
from nmt.text.language import base_code

WITHOUT_SPACES = ("zh", "ja", "th", "km", "lo", "my")
"""Languages that are written without spaces between words."""


def check(config: Config) -> None:
    """Refuse a utility that finds no words in the target language."""
    decoding, language = config.decoding, base_code(config.data.target_lang)
    if decoding.strategy == STRATEGY and cast(RiskDecoding, decoding).utility == "bleu" and language in WITHOUT_SPACES:
        raise ConfigError(
            "decoding.utility=bleu compares the words between spaces, which "
            f"data.target_lang={config.data.target_lang} does not have: set decoding.utility=chrf"
        )
