"""Completion of a command line, also inside bash."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.config.completion import SCRIPT, complete
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


def test_the_command_prints_the_script_or_the_next_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 0
    assert capsys.readouterr().out == SCRIPT
    assert main(["completion", "--", "nmt train experiment=dem"]) == 0
    assert capsys.readouterr().out == "demo\n"


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes_a_command_line(tmp_path: Path) -> None:
    nmt = tmp_path / "nmt"
    nmt.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nmt "$@"\n')
    nmt.chmod(0o755)
    line = "nmt train model=bi"
    script = f"""
        PATH="{tmp_path}:$PATH"; eval "$(nmt completion)"
        COMP_LINE="{line}" COMP_POINT={len(line)} COMP_WORDS=(nmt train model = bi) COMP_CWORD=4
        _nmt; printf '%s\\n' "${{COMPREPLY[@]}}"; complete -p nmt
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["big", "complete -F _nmt nmt"], done.stderr
