"""Completion of a command line, also inside bash."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.config.completion import SCRIPTS, complete
from nmt.config.conf_folder import options

KEYS = {name: command.settings for name, command in COMMANDS.items()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nmt tr", ["train", "translate"]),
        (".venv/bin/nmt aver", ["average"]),
        ("nmt train training.warm", ["training.warmup_steps="]),
        ("nmt train seed=1 training.keep", ["training.keep_best=", "training.keep_last="]),
        ("nmt eval training.warm", []),
        ("nmt train runtime.compile=", ["false", "true"]),
        ("nmt train model=b", [name for name in options("model") if name.startswith("b")]),
        ("nmt train model.norm=", ["layer", "rms"]),
        ("nmt train training.steps=", []),
        ("nmt train nosuch=", []),
        ("nmt nosuch a", []),
        ("", []),
        ("nmt train 'a b", []),
    ],
)
def test_the_last_word_of_a_line_is_completed(line: str, expected: list[str]) -> None:
    assert complete(line, KEYS) == expected


def test_an_empty_word_offers_all_commands_experiments_and_settings() -> None:
    assert complete("nmt ", KEYS) == sorted([*COMMANDS, "completion"])
    assert complete("nmt train experiment=", KEYS) == options("experiment")
    offered = complete("nmt train ", KEYS)
    assert {"experiment=", "model=", "training.steps=", "name="} <= set(offered)
    assert "evaluation.splits=" not in offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_the_script_of_a_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]


def test_the_command_prints_the_script_of_bash_by_default_or_the_next_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 0
    assert capsys.readouterr().out == SCRIPTS["bash"]
    assert main(["completion", "--", "nmt train experiment=dem"]) == 0
    assert capsys.readouterr().out == "demo\n"
    assert main(["completion", "fihs"]) == 2
    assert capsys.readouterr().err == "nmt: there is no completion for fihs; did you mean fish?\n"


def test_flags_and_names_in_the_own_folder_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete("nmt train --mul", KEYS) == ["--multirun"]
    write = tmp_path / "conf" / "recipe" / "fast.yaml"
    write.parent.mkdir(parents=True)
    write.write_text("# @package _global_\nseed: 3\n")
    monkeypatch.chdir(tmp_path)
    assert complete("nmt train rec", KEYS) == ["recipe="]
    assert complete("nmt train recipe=", KEYS) == ["fast"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with the program `nmt`."""
    nmt = tmp_path / "nmt"
    nmt.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nmt "$@"\n')
    nmt.chmod(0o755)
    return tmp_path


def run_shell(*words: str) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.stdout.split("\n")


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes_a_command_line(program: Path) -> None:
    line = "nmt train model=bi"
    script = f"""
        PATH="{program}:$PATH"; eval "$(nmt completion)"
        COMP_LINE="{line}" COMP_POINT={len(line)} COMP_WORDS=(nmt train model = bi) COMP_CWORD=4
        _nmt; printf '%s\\n' "${{COMPREPLY[@]}}"; complete -p nmt
    """
    assert run_shell("bash", "-c", script)[:2] == ["big", "complete -F _nmt nmt"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_completes_a_command_line(program: Path) -> None:
    script = f"""
        PATH="{program}:$PATH"
        compdef() {{ :; }}; compset() {{ :; }}
        compadd() {{ shift 3; print -l -- "$@"; }}
        eval "$(nmt completion zsh)"
        words=(nmt train model=bi) CURRENT=3 PREFIX=model=bi
        _nmt
    """
    assert [each for each in run_shell("zsh", "-fc", script) if each] == ["big"]


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
def test_fish_completes_a_command_line(program: Path) -> None:
    script = f"set -x PATH {program} $PATH; nmt completion fish | source; complete -C 'nmt train model=bi'"
    assert run_shell("fish", "--no-config", "-c", script)[0] == "model=big"
