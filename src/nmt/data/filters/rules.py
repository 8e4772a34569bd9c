"""Rules of filters that take more than a line, each for a sentence and its translation."""

import re
import unicodedata
from collections.abc import Callable

from nmt.errors import UserError
from nmt.text.language import identified_code, language_identifier

LINK = re.compile(
    r"(?:https?://|www\.)[!#-&(-;=?-~]*[\w/#=&~-]|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]+)+|</?[a-z][a-z0-9]{0,10}\b[^<>]{0,200}>",
    re.IGNORECASE | re.ASCII,
)
"""Addresses of pages and of e-mail, without punctuation after them or letters that no address has, and tags."""
MAX_LINK_SHARE = 0.5
"""The largest share of links in the characters of a side."""
SEPARATOR = re.compile(r"\s(?:[|»›•·>/]|::)\s")
"""What menus have between their entries."""
MAX_SEPARATORS = 2
NOTICES = re.compile(
    "|".join(
        (
            r"©|\(c\)\s*(?:19|20)\d\d",
            r"all rights reserved|alle rechte vorbehalten|tous droits réservés|todos los derechos reservados",
            r"\b(?:uses?|accept|verwende[nt]|nutz(?:en|t)|akzeptieren|utilis(?:e|ent|ons)|accepter|utiliza(?:mos|n)?|aceptar)\b"
            r".{0,60}\bcookies\b",
            r"\bcookies (?:akzeptieren|zulassen)\b",
            r"\bcookie[ -](?:policy|settings|richtlinie|einstellungen)\b",
            r"\b(?:enable|activate|aktivieren|activer|habilite|active)\b.{0,40}\bjavascript\b",
            r"\bjavascript\b.{0,40}\b(?:aktivieren|enabled)\b",
            r"\bclick here\b|\bhier klicken\b|\bklicken sie hier\b|\bcliquez ici\b|\bhaga clic aquí\b",
            r"\b(?:privacy policy|terms of (?:use|service)|datenschutzerklärung|mentions légales|aviso legal)\b",
            r"(?:^|[^\w\s,;:]\s*)(?:read more|weiterlesen|lire la suite|leer más)\b[\s.…»>]*$",
            r"\bpowered by\b",
        )
    ),
    re.IGNORECASE,
)
"""Notices of many pages, in four languages."""


def share_of_letters(text: str) -> float:
    """Return the share of letters, with their marks, in the characters that are not spaces; 1 for no characters."""
    characters = "".join(text.split())
    if not characters or characters.isalpha():
        return 1.0
    return sum(unicodedata.category(each)[0] in "LM" for each in characters) / len(characters)


def has_equal_links(source: str, target: str) -> bool:
    """Return whether both sides have the same links, in any order, and more text than links."""
    found = [LINK.findall(side) if _may_have_links(side) else [] for side in (source, target)]
    if not any(found):
        return True
    if sorted(found[0]) != sorted(found[1]):
        return False
    shares = (sum(map(len, links)) / len(side) for links, side in zip(found, (source, target), strict=True) if links)
    return max(shares) <= MAX_LINK_SHARE


def _may_have_links(text: str) -> bool:
    return "//" in text or "www." in text.lower() or "@" in text or "<" in text


def is_sentence(text: str) -> bool:
    """Return whether a text is neither a menu nor a notice."""
    return len(SEPARATOR.findall(text)) <= MAX_SEPARATORS and not NOTICES.search(text)


GROUPED = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:[.,'’ \u00a0\u066c\u2009\u202f]\d{3})+(?!\d)|\d+")
"""Digits, with or without separators between groups of thousands; India's groups have two digits, but for the last."""
SECOND_DECIMAL_ZERO = re.compile(r"(?<=\d[.,]\d)0(?![.,]?\d)")


def same_numbers(source: str, target: str) -> bool:
    """Return whether both sides have the same numbers, in any order, as digits.

    As 1.50 may be written 1.5, but 8.30 may be a time, zeros in the second decimal place may be there or not.
    """
    if numbers_in(source) == numbers_in(target):
        return True
    short = [numbers_in(SECOND_DECIMAL_ZERO.sub("", text)) for text in (source, target)]
    return short[0] == short[1]


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text as plain digits, sorted.

    Separators of thousands and leading zeros are left out, and so are zeros: 8:00 equals 8. The digits on both sides of
    a decimal point or comma are two numbers, because languages write it differently.
    """
    found = (re.sub(r"\D", "", each) for each in GROUPED.findall(text))
    plain = ("".join(str(unicodedata.decimal(digit)) for digit in each).lstrip("0") for each in found)
    return sorted(filter(None, plain))


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
