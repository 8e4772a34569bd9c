"""Detect the language of a text, if the package that does it is installed."""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from nmt.serving.errors import RequestError
from nmt.text.language import identified_code, language_identifier

Detector = Callable[[str], Mapping[str, float]]
"""Returns the probability of each language that it knows."""
UNDETECTED = 0.0
"""The confidence of a language that is assumed because there is no other."""
MAX_CHARACTERS = 2_000
"""Characters of a text that are read to detect its language; more take longer and change little."""


def load_detector() -> Detector | None:
    """Return the detector; None if its package is not installed."""
    if not find_spec("py3langid"):
        return None
    identifier = language_identifier()
    return lambda text: {code: float(probability) for code, probability in identifier.rank(text[:MAX_CHARACTERS])}


def detected(
    detector: Detector | None, texts: Iterable[str], languages: Iterable[str], refusal_status: int
) -> list[dict[str, Any]]:
    """Return languages with their confidence in percent, the most probable one first, as LibreTranslate does.

    Without a detector the only language is assumed; if there are several, this raises an error with the given status.
    """
    codes = sorted(set(languages))
    if detector:
        probabilities = detector("\n".join(texts))
        found = [(round(100 * probabilities.get(identified_code(code), 0), 2), code) for code in codes]
    elif len(codes) == 1:
        found = [(UNDETECTED, codes[0])]
    else:
        raise RequestError(refusal_status, "this server does not detect languages: name the source language")
    ranked = sorted(found, key=lambda each: -each[0])
    return [{"confidence": confidence, "language": code} for confidence, code in ranked]
