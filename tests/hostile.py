"""Random unusual text, damaged files, and altered JSON."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

EXAMPLES = 20
FRAGMENTS = (
    *("the", "cat", " ", "  ", "\t", "", "0", "-1", "\\", '"', "'", "%s", "{}", "<seg>", "&#0;", "\u2585", "\u2581"),
    *("\0", "\r", "\v", "\f", "\x1b[2J", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff", "\u00a0", "\u3000"),
    *("\u200f", "\u202e", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\ufdfa"),
    *("e\u0301\u0323" * 9, "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1ea\U0001f1fa", "\U0001d518"),
    *("\U0010ffff", "\ufffd", "\u01c5", "\u0130", "\u00df"),
)
"""Text that often breaks readers: controls, separators that are not line ends, right to left, long clusters, emoji."""
NOT_UTF_8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80", b"\xfe\xff", b"caf\xe9")
"""Latin-1, overlong characters, lone surrogates, numbers beyond the last character, and characters cut short."""
NUMBERS = (b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"\xff" * 4, b"\0\0\0\x80", b"999999999999", b"-1", b"1e999")


def trying(inputs: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that calls a test with some of these inputs, the same ones each time, as `content`."""
    quiet = settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: quiet(given(content=inputs)(test))


def texts() -> SearchStrategy[str]:
    """Return a strategy for texts of one line, without a line feed."""
    anything = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
    return st.lists(st.sampled_from(FRAGMENTS) | anything, max_size=8).map("".join)


def raw_lines() -> SearchStrategy[bytes]:
    """Return a strategy for streams of lines, valid and invalid."""
    ends = st.sampled_from([b"\n", b"\r\n", b"\n\n", b""])
    some = texts().map(str.encode) | st.sampled_from(NOT_UTF_8) | st.binary(max_size=30)
    return st.lists(st.tuples(some, ends).map(b"".join), max_size=8).map(b"".join)


@st.composite
def damaged(draw: DrawFn, content: bytes) -> bytes:
    """Draw a file with random damage: flipped, lost, repeated and inserted bytes."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.sampled_from([1, 1, 2, 4, 8, 64, 1024, len(content)]))
        chunk, rest = content[start : start + length], content[start + length :]
        match draw(st.sampled_from(["flip", "cut", "lose", "repeat", "zero", "insert"])):
            case "flip":
                chunk = bytes([chunk[0] ^ 1 << draw(st.integers(0, 7))]) + chunk[1:] if chunk else chunk
            case "cut":
                chunk, rest = b"", b""
            case "lose":
                chunk = b""
            case "repeat":
                chunk *= 2
            case "zero":
                chunk = bytes(len(chunk))
            case "insert":
                chunk = draw(st.sampled_from(NUMBERS) | st.binary(max_size=8)) + chunk
        content = content[:start] + chunk + rest
    return content


def json_values() -> SearchStrategy[Any]:
    """Return a strategy for JSON values of every type, some nested."""
    odd = st.sampled_from(["../../x", "/x", "<u2", True, 10**400])
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts() | odd
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3))


@st.composite
def altered(draw: DrawFn, value: Any) -> Any:
    """Draw a JSON value with one entry changed, renamed or removed."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(json_values())
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
    copy = value.copy()
    match draw(st.sampled_from(["alter", "alter", "alter", "lose", "rename"])):
        case "lose":
            del copy[key]
        case "rename" if isinstance(copy, dict):
            copy[draw(texts() | st.sampled_from(["../../x", "/x", "\0"]))] = copy.pop(key)
        case _:
            copy[key] = draw(altered(value[key]))
    return copy
