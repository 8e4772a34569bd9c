"""The commands in README and docs, as they are written."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from test_all.stages import ROOT

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block of code, with the name of its language."""
INLINE = re.compile(r"`(?!.*COMMAND)((?:make \S+ ARGS=|\.venv/bin/|nmt \w+ \S*[=-])[^`]*)`")
"""A command with arguments in a sentence or a table. Without arguments it is the name of a command."""
GOES_ON = ("\\", "&&", "|")
DOCUMENTS = (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))


@dataclass(frozen=True)
class Statement:
    """A command of a document, of one line or several."""

    document: str
    text: str


def statements(document: Path) -> list[Statement]:
    """Return the commands in the shell blocks of a document, then those of its sentences, each once."""
    text = document.read_text(encoding="utf-8")
    found = [each for language, block in FENCED.findall(text) if language == "sh" for each in split_block(block)]
    found += [" ".join(each.split()) for each in INLINE.findall(FENCED.sub("", text))]
    return [Statement(document.name, each) for each in dict.fromkeys(found)]


def split_block(block: str) -> Iterator[str]:
    """Yield the commands of a shell block: a line, or several if the first one is not complete."""
    lines: list[str] = []
    for line in block.splitlines():
        lines.append(line)
        text = "\n".join(lines)
        if _is_complete(text):
            if shlex.split(text, comments=True):
                yield text
            lines = []
    if lines:
        raise ValueError(f"this command has no end: {lines}")


def _is_complete(text: str) -> bool:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an open quotation mark
        return False
    return not (text.endswith("\\") or (words and words[-1] in GOES_ON))
