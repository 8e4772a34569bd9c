"""The commands in the documents work: their programs, targets, files, options and settings exist.

tests/integration runs the commands themselves at a toy size; the fast ones run here as they are written.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.config.compose import compose
from nmt.config.jobs import parse, without_sweeps

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")),
    *sorted(ROOT.glob("docs/*.md")),
    ROOT / "scripts" / "dev" / "README.md",
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")
MENTIONED = re.compile(r"(make|nmt|python|eval|sbatch|\.venv/bin/\S+) (?!.*COMMAND)")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"^([A-Z_]+) \?=", MAKEFILE, re.MULTILINE))

Words = tuple[str, ...]


def commands(document: str) -> Iterator[Words]:
    """Yield the commands in a document's shell blocks, and those that its sentences mention."""
    for language, block in FENCED.findall(document):
        if language == "sh":
            yield from parsed(block)
    for mentioned in INLINE.findall(FENCED.sub("", document)):
        if MENTIONED.match(mentioned):
            yield from parsed(mentioned)


def parsed(text: str) -> Iterator[Words]:
    """Yield the words of each simple command in a piece of shell, without assignments to the environment."""
    text = re.sub(r"(^|\s)#[^\n]*", r"\1", text).replace("\\\n", " ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;\n")
    lexer.whitespace, lexer.whitespace_split = " \t", True
    for ends, words in groupby(lexer, lambda word: bool(word) and not word.strip("|&;\n")):
        command = list(words)
        while command and re.fullmatch(r"[A-Z_]+=\S*", command[0]):
            command.pop(0)
        if command and not ends:
            yield tuple(command)


FOUND = {document: list(commands(document.read_text(encoding="utf-8"))) for document in DOCUMENTS}
ALL = sorted({words for found in FOUND.values() for words in found})


def anchors(document: str) -> set[str]:
    """Return the fragments of addresses that lead to the headings of a Markdown document."""
    headings = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_make(words: Words) -> None:
    targets = [word for word in words if "=" not in word]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    assert set(targets) <= TARGETS
    assert set(given) <= VARIABLES
    for target in targets:
        if target in (*COMMANDS, "all") and "ARGS" in given:
            check_command((("data" if target == "all" else target), *shlex.split(given["ARGS"])))


def check_command(words: Words) -> None:
    command, *overrides = words
    if command in ("--help", "--version"):
        return
    assert command in COMMANDS
    if not overrides:
        return
    line = parse([word for word in overrides if not word.startswith("--help")])
    if not line.is_multirun or any(word.startswith("hydra/sweeper=") for word in line.of_hydra):
        compose([*COMMANDS[command].defaults, *without_sweeps(line.settings)])
        return
    key, _, values = line.settings[0].partition("=")
    for value in values.split(","):
        compose([f"{key}={value}", *line.settings[1:]])


def check_python(words: Words) -> None:
    if words[:2] == ("-m", "pytest"):
        check_pytest(words[2:])
    elif words[0] == "-m":
        module = ROOT / words[1].replace(".", "/")
        assert module.is_dir() or module.with_suffix(".py").is_file()
    else:
        check_script(words)


def check_pytest(words: Words) -> None:
    places = [ROOT / word for word in words if word.startswith("tests/")]
    files = [file for place in places for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
    names = [name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)]
    if "-k" in words:
        names = [name for name in names if words[words.index("-k") + 1] in name]
    assert names


def check_script(words: Words) -> None:
    """Check a script of this project: it has these options, and its other arguments are valid settings."""
    path = ROOT / words[0]
    source = (path / "__main__.py" if path.is_dir() else path).read_text(encoding="utf-8")
    for option in (word.partition("=")[0] for word in words[1:] if word.startswith("--")):
        assert f'"{option}"' in source
    compose([word for word in words[1:] if re.match(r"[a-z_.]+=", word)])


def check_torchrun(words: Words) -> None:
    place = words.index("-m")
    assert words[place + 1] == "nmt"
    check_command(words[place + 2 :])


def check_slurm(words: Words) -> None:
    check_script(tuple(word for word in words if not word.startswith("--")))


def check_eval(words: Words) -> None:
    (inside,) = parsed(words[0].removeprefix("$(").removesuffix(")"))
    check(inside)


CHECKS: dict[str, Callable[[Words], None]] = {
    "make": check_make,
    "nmt": check_command,
    ".venv/bin/nmt": check_command,
    ".venv/bin/torchrun": check_torchrun,
    ".venv/bin/python": check_python,
    "python": check_python,
    "sbatch": check_slurm,
    "eval": check_eval,
    "echo": lambda _: None,
    "curl": lambda _: None,
    ".venv/bin/pre-commit": lambda words: None if words == ("install",) else pytest.fail("what does it do?"),
}


def check(words: Words) -> None:
    assert words[0] in CHECKS, f"nothing here knows how to check {words[0]}"
    CHECKS[words[0]](words[1:])


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_in_the_documents_is_valid(words: Words) -> None:
    check(words)


def test_readme_shows_the_most_important_targets() -> None:
    shown = {words[1] for words in FOUND[ROOT / "README.md"] if words[0] == "make"}
    assert shown >= {"demo", "test", "all", "describe", "table3", "train", "help"}


CHEAP = [
    words
    for words in ALL
    if words[0] in ("make", "nmt", ".venv/bin/nmt")
    and (words[1] == "describe" or (words[0] != "make" and "--help" in words))
]


@pytest.mark.parametrize("words", CHEAP, ids=" ".join)
def test_fast_commands_of_the_documents_succeed(words: Words, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = list(words[1:])
    if words[0] == "make":
        arguments = [word for each in arguments for word in shlex.split(each.removeprefix("ARGS="))]
    assert main(arguments) == 0
    assert capsys.readouterr().out


def test_make_help_lists_every_target_of_the_documents() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  ([a-z0-9-]+) ", done.stdout, re.MULTILINE))
    assert listed >= {word for words in ALL if words[0] == "make" for word in words[1:] if "=" not in word}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_names_an_existing_file_and_heading(document: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", document.read_text(encoding="utf-8")):
        file = document.parent / name if name else document
        assert file.exists(), name
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), f"{name}#{anchor}"
