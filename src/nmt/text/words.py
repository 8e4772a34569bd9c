"""Words: letters and digits with the marks on them; in scripts without spaces, each character is a word."""

import re
import unicodedata

_BASIC_PLANE = 0x10000
_LAST_MARK = 0x1FFFF


def _marks(start: int, stop: int) -> str:
    return "".join(each for each in map(chr, range(start, stop)) if unicodedata.category(each)[0] == "M")


_SCRIPTS_WITHOUT_SPACES = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u309f\u3100-\u312f\u31a0-\u31bf"  # hiragana and bopomofo; katakana spells foreign words, which stay whole
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
_RARE_MARKS = rf"(?=[^\x00-\uffff])[{_marks(_BASIC_PLANE, _LAST_MARK + 1)}]"
"""A mark of a script beyond the basic plane. The set is slow to search, so few characters get past the look-ahead."""
_MARK = rf"(?:[{_marks(0, _BASIC_PLANE)}]|{_RARE_MARKS})"
"""A mark belongs to the letter before it, as in Hindi and in decomposed é, but is no \\w."""
WORD = re.compile(
    rf"(?:[^\W{_SCRIPTS_WITHOUT_SPACES}]+|{_MARK})+"
    rf"|(?=\w)[{_SCRIPTS_WITHOUT_SPACES}]{_MARK}*"
)  # fmt: skip
_BETWEEN_SPACES = re.compile(rf"[{_SCRIPTS_WITHOUT_SPACES}]{_MARK}*|[^\s{_SCRIPTS_WITHOUT_SPACES}]+")


def words_between_spaces(line: str) -> list[str]:
    """Return the words of a line with their punctuation; in scripts without spaces, each character is one."""
    return _BETWEEN_SPACES.findall(line)
