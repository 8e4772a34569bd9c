"""Every file and every name that docs/paper.md gives exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "paper.md"
REFERENCE = re.compile(r"`((?:src|tests|conf)/[\w/.-]+\.(?:py|yaml))(?:: ([\w., ]+))?`")


class Reference(NamedTuple):
    """A file that the document gives, and a name in it; an empty name stands for the file alone."""

    line: int
    file: str
    name: str


def references(text: str) -> Iterator[Reference]:
    """Yield what a document gives as `file` or as `file: name, name`."""
    for number, line in enumerate(text.splitlines(), start=1):
        for file, names in REFERENCE.findall(line):
            for name in names.split(", "):
                yield Reference(number, file, name)


@cache
def definitions(file: Path) -> frozenset[str]:
    """Return the classes, functions, constants and methods (`Class.method`) that a file defines."""
    return frozenset(defined(ast.parse(file.read_text(encoding="utf-8")).body))


def defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the names that statements define, classes with what is in them."""
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from defined(node.body, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


def problem(reference: Reference, root: Path = ROOT) -> str:
    """Return what is wrong with a reference, with the files that do define its name; empty if nothing is wrong."""
    where = f"docs/paper.md:{reference.line}:"
    file = root / reference.file
    elsewhere = [
        str(other.relative_to(root))
        for other in sorted((root / "src").rglob("*.py"))
        if reference.name in definitions(other)
    ]
    hint = f"; it is in {', '.join(elsewhere)}" if elsewhere else ""
    if not file.is_file():
        return f"{where} there is no file {reference.file} (for {reference.name or 'the file alone'}){hint}"
    if reference.name and reference.name not in definitions(file):
        return f"{where} {reference.file} does not define {reference.name}{hint}"
    return ""


FOUND = list(references(DOCUMENT.read_text(encoding="utf-8")))


def test_every_file_and_name_of_the_paper_document_exists() -> None:
    problems = [found for found in map(problem, FOUND) if found]
    assert not problems, "\n".join(["", *problems])
