"""Check the language of sentences."""

from collections.abc import Sequence

from nmt.config.data import DataConfig
from nmt.data.filters.parallel import Keeps
from nmt.data.sources.source import Languages, Pair, languages
from nmt.errors import UserError
from nmt.text.language import identified_code, language_identifier


class LanguageCheck:
    """Keeps pairs whose sides are in their languages, according to a classifier."""

    def __init__(self, languages: Languages, min_probability: float) -> None:
        """Keep a pair if each side has its language with at least this probability."""
        self._languages = [identified_code(code) for code in languages]
        self._min_probability = min_probability
        known = language_identifier().labels
        for full, code in zip(languages, self._languages, strict=True):
            if code not in known:
                raise UserError(
                    f"data.min_language_probability cannot check {full}: py3langid knows {', '.join(sorted(known))}"
                )

    def keeps(self, chunk: Sequence[Pair]) -> list[bool]:
        """Return for each pair whether both sides are probably in their languages."""
        source, target = self._languages
        return [self._is_in(pair[0], source) and self._is_in(pair[1], target) for pair in chunk]

    def _is_in(self, text: str, language: str) -> bool:
        likeliest, probability = language_identifier().classify(text)
        if likeliest != language:  # ranking all languages takes longer
            probability = dict(language_identifier().rank(text))[language]
        return bool(probability >= self._min_probability)


def judging(config: DataConfig) -> Keeps:
    """Return the function that judges pairs by their languages."""
    return LanguageCheck(languages(config), config.min_language_probability).keeps
