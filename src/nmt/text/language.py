"""Compare the codes of languages, name them, and recognise languages.

Languages are recognised with py3langid, an optional package that needs no download.
"""

from functools import cache
from typing import Any

from nmt.packages import import_optional

PACKAGE = "py3langid.langid"
OTHER_CODES = {"nb": "no", "iw": "he", "fil": "tl", "mo": "ro", "cmn": "zh", "prs": "fa"}
"""Codes of languages that py3langid has under another one."""
NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "lt": "Lithuanian", "lv": "Latvian", "mt": "Maltese", "nb": "Norwegian Bokmål", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "th": "Thai", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""English names by ISO 639-1 code."""


def base_code(language: str) -> str:
    """Return the code of a language without its region or script: `de` for de-AT and DE_at."""
    return language.lower().replace("_", "-").partition("-")[0]


def identified_code(language: str) -> str:
    """Return the code under which py3langid has a language, if it has it: `no` for nb-NO."""
    code = base_code(language)
    return OTHER_CODES.get(code, code)


def language_name(code: str) -> str:
    """Return the English name of a language, or its code if the name is not known."""
    return NAMES.get(base_code(code), code)


@cache
def language_identifier() -> Any:
    """Return the classifier, whose model comes with the package."""
    module = import_optional(PACKAGE)
    return module.LanguageIdentifier.from_model_file(module.MODEL_FILE, norm_probs=True)
