"""Messages name the commands that the user has: targets of make in a clone, and `nmt` where it is installed."""

import re
from pathlib import Path

import pytest

import nmt
from nmt import errors
from nmt.commands import COMMANDS

PACKAGE = Path(nmt.__file__).parent


def test_errors_name_the_commands_that_there_are_also_in_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(errors, "has_makefile", lambda: False)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(errors.UserError, match=r"run `nmt train` and `nmt average` first \(with the same settings\)"):
        nmt.load(tmp_path)


def test_every_target_that_the_package_names_is_a_command() -> None:
    texts = (file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py") if file.name != "errors.py")
    named = {target for text in texts for target in re.findall(r"`make (\w+)", text)}
    assert named
    assert named <= {*COMMANDS}
