"""Every file and every name that docs/paper.md gives exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "paper.md"
REFERENCE = re.compile(r"`((?:src|tests|conf)/[\w/.-]+\.(?:py|yaml))(?:: ([\w., ]+))?`")
SECTIONS = ["3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4", "6.1", "6.2", "6.3"]


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


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_of_the_paper_has_a_heading(section: str) -> None:
    assert re.search(rf"^#+ {re.escape(section)} ", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("equation", [1, 2, 3])
def test_every_numbered_equation_is_followed_by_a_reference(equation: int) -> None:
    _, heading, rest = DOCUMENT.read_text(encoding="utf-8").partition(f"Equation {equation}:")
    assert heading
    assert REFERENCE.search(rest.partition("\n#")[0])


def test_source_files_are_always_given_in_the_form_that_is_checked() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "src/nmt/" in REFERENCE.sub("", line)] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("`src/a.py: f`", ""),
        ("`src/a.py: C, C.m, LIMIT`", ""),
        ("`src/a.py`", ""),
        ("`src/a.py: g`", "docs/paper.md:1: src/a.py does not define g; it is in src/b.py"),
        ("`src/a.py: C.n`", "docs/paper.md:1: src/a.py does not define C.n"),
        ("`src/c.py: f`", "docs/paper.md:1: there is no file src/c.py (for f); it is in src/a.py"),
        ("`conf/c.yaml`", "docs/paper.md:1: there is no file conf/c.yaml (for the file alone)"),
    ],
)
def test_a_wrong_reference_is_named_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("LIMIT: int = 1\nclass C:\n    def m(self): ...\ndef f(): ...\n")
    (tmp_path / "src" / "b.py").write_text("g = 1\n")
    assert [found for each in references(line) if (found := problem(each, tmp_path))] == ([message] if message else [])
