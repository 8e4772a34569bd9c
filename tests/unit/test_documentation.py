"""What the documents name exists: targets, commands, settings, options, files, code and headings."""

import re
import runpy
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.config.compose import compose, parse

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/*.md")), ROOT / "scripts" / "dev" / "README.md"]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MENTIONED = re.compile(r"`((?:make|nmt|\.venv/bin/\S+|sbatch) (?![^`]*COMMAND)[^`]+)`")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
CODE = re.compile(r"`((?:src|tests)/[\w/.-]+\.py)[:`]")

Words = list[str]


def commands(document: str) -> Iterator[Words]:
    """Yield the words of the commands in a document's shell blocks, and of those that its sentences mention."""
    shell = [block for language, block in FENCED.findall(document) if language == "sh"]
    for text in (*shell, *MENTIONED.findall(FENCED.sub("", document))):
        joined = re.sub(r"(^|\s)#[^\n]*", r"\1", text).replace("\\\n", " ")
        lexer = shlex.shlex(joined, posix=True, punctuation_chars="|&;\n")
        lexer.whitespace, lexer.whitespace_split = " \t", True
        for ends, group in groupby(lexer, lambda word: bool(word) and not word.strip("|&;\n")):
            words = list(group)
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                words.pop(0)  # variables of the environment
            if words and not ends:
                yield words


@cache
def compose_once(*words: str) -> None:
    """Compose settings, which takes a tenth of a second; many commands have the same."""
    compose(list(words))


def check(words: Words) -> None:
    """Check the names in a command: programs that are not ours are left alone."""
    program, *rest = words
    if "nmt" in words[:-1] and "-m" in words:  # through torchrun
        check_settings(words[words.index("nmt") + 1 :])
    elif program in ("nmt", ".venv/bin/nmt"):
        check_settings(rest)
    elif program == "make":
        targets = [word for word in rest if "=" not in word]
        assert set(targets) <= TARGETS
        arguments = next((word.removeprefix("ARGS=") for word in rest if word.startswith("ARGS=")), "")
        for target in targets if arguments else ():
            check_settings(["data" if target == "all" else target, *shlex.split(arguments)])
    elif program in (".venv/bin/python", "sbatch") and (script := next((w for w in rest if "scripts/" in w), "")):
        path = ROOT / script
        source = (path / "__main__.py" if path.is_dir() else path).read_text(encoding="utf-8")
        after = rest[rest.index(script) + 1 :]
        assert all(f'"{word.partition("=")[0]}"' in source for word in after if word.startswith("--"))
        compose([word for word in after if re.match(r"[a-z_.]+=", word)])


def check_settings(words: Words) -> None:
    """Check a command of `nmt` and its settings, each value of those that a sweep varies."""
    command, *settings = words
    assert command in COMMANDS or command in ("--help", "--version")
    line = parse([word for word in settings if not word.startswith("--help")])
    fixed = line.single
    compose_once(*((*COMMANDS[command].defaults, *fixed) if command in COMMANDS else ()))
    for word in set(line.settings) - set(fixed):
        key, _, values = word.partition("=")
        if "(" not in values:
            for value in values.split(","):
                compose_once(f"{key}={value}", *fixed)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_links_name_what_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for words in commands(text):
        try:
            check(words)
        except Exception as error:
            raise AssertionError(f"{document.name}: {shlex.join(words)}: {error}") from error
    for name, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", text):
        file = document.parent / name if name else document
        assert file.exists(), name
        headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert not anchor or anchor in anchors, f"{name}#{anchor}"
    assert all((ROOT / file).is_file() for file in CODE.findall(text))


def test_make_help_lists_the_targets_of_the_documents() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  ([a-z0-9-]+) ", done.stdout, re.MULTILINE))
    found = [words for document in DOCUMENTS for words in commands(document.read_text(encoding="utf-8"))]
    assert listed >= {word for words in found if words[0] == "make" for word in words[1:] if "=" not in word}


def test_the_tables_of_results_are_those_of_their_json_files() -> None:
    module = runpy.run_path(str(ROOT / "scripts" / "results"))
    assert module["rendered"]() == (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), "run scripts/results"


def test_what_readme_asks_before_a_long_run_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    found = [words for words in commands((ROOT / "README.md").read_text(encoding="utf-8")) if "describe" in words]
    assert found
    for words in found:
        assert main(["describe", *shlex.split(words[-1].removeprefix("ARGS="))]) == 0
        assert "parameters" in capsys.readouterr().out
