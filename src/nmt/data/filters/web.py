"""Rules about the text of web pages, each for one sentence and its translation."""

import re
import unicodedata

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


def is_sentence(source: str, target: str) -> bool:
    """Return whether neither side is a menu or a notice."""
    return not (_is_boilerplate(source) or _is_boilerplate(target))


def _is_boilerplate(text: str) -> bool:
    return len(SEPARATOR.findall(text)) > MAX_SEPARATORS or bool(NOTICES.search(text))
