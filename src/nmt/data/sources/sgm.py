"""SGM files of WMT's test sets: sentences between <seg> and </seg>."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import UserError
from nmt.text.language import base_code
from nmt.text.lines import read_lines

LANGUAGE_KEYS = {"src": "srclang", "ref": "trglang", "tst": "trglang"}
"""The attribute that names the language, by the kind of set."""


def sentences(path: Path, language: str) -> Iterator[str]:
    """Yield the segments of a file, after a check of the language that it names."""
    text = "\n".join(read_lines(path))
    _check_language(path, text, language)
    # [^<>] rather than [^>]: otherwise a file full of "<seg" would take quadratic time
    before, *rest = re.split(r"<(/?)seg(?:\s[^<>]*)?>", text, flags=re.IGNORECASE)
    tags, texts = rest[0::2], rest[1::2]
    if not tags:
        raise UserError(f"{path} holds no <seg> lines: is it an sgm file?")
    if tags != ["", "/"] * (len(tags) // 2):
        wrong = next(index for index, tag in enumerate([*tags, "end"]) if tag != ("", "/")[index % 2])
        line = 1 + sum(each.count("\n") for each in (before, *texts[:wrong]))
        raise UserError(f"{path}, line {line}: a <seg> without its </seg>, or the reverse: correct it.")
    return (" ".join(_unescape(segment).split()) for segment in texts[0::2])


def _unescape(text: str) -> str:
    """Resolve entities; numbers too long for a character become the replacement character."""
    return html.unescape(re.sub(r"&#[0-9]{9,};?", "\ufffd", text))


def _check_language(path: Path, text: str, language: str) -> None:
    """Refuse a file in another language; names that are not two letters, such as "any", are ignored."""
    opening = re.search(r"<(src|ref|tst)set\b([^<>]*)>", text, re.IGNORECASE)
    if not opening:
        return
    key = LANGUAGE_KEYS[opening[1].lower()]
    named = re.search(rf"\b{key}\s*=\s*[\"']?([\w-]+)", opening[2], re.IGNORECASE)
    if named and len(named[1]) == 2 and named[1].lower() != base_code(language):
        raise UserError(f"{path} says it is in {named[1]}, but {language} is wanted: check the order of the two files.")
