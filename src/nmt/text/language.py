"""Recognise languages with py3langid, an optional package that needs no download, and compare their codes."""

from functools import cache
from typing import Any

from nmt.compute.packages import import_optional

PACKAGE = "py3langid.langid"
OTHER_CODES = {"nb": "no", "iw": "he", "fil": "tl", "mo": "ro", "cmn": "zh", "prs": "fa"}
"""Codes of languages that py3langid has under another one."""


def base_code(language: str) -> str:
    """Return the code of a language without its region or script: `de` for de-AT and DE_at."""
    return language.lower().replace("_", "-").partition("-")[0]


def identified_code(language: str) -> str:
    """Return the code under which py3langid has a language, if it has it: `no` for nb-NO."""
    code = base_code(language)
    return OTHER_CODES.get(code, code)


@cache
def language_identifier() -> Any:
    """Return the classifier, whose model comes with the package."""
    module = import_optional(PACKAGE)
    return module.LanguageIdentifier.from_model_file(module.MODEL_FILE, norm_probs=True)
