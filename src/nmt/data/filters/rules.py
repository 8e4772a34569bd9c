"""The rule of the filter of languages."""

from collections.abc import Callable

from nmt.errors import UserError
from nmt.text.language import identified_code, language_identifier


def language_check(language: str, least: float) -> Callable[[str], bool]:
    """Return a function that says whether a text has a language with at least this probability."""
    code, classifier = identified_code(language), language_identifier()
    if code not in classifier.labels:
        raise UserError(
            f"data.min_language_probability cannot check {language}: py3langid knows "
            f"{', '.join(sorted(classifier.labels))}"
        )

    def has_language(text: str) -> bool:
        likeliest, probability = classifier.classify(text)
        if likeliest != code:  # ranking all languages takes longer
            probability = dict(classifier.rank(text))[code]
        return bool(probability >= least)

    return has_language
