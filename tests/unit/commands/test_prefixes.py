"""`nmt translate` with beginnings."""

from pathlib import Path

import pytest

from nmt.cli import main
from tests.unit.commands.test_evaluate_and_translate import Run, content, run
from tests.unit.commands.test_score import LINES, printed, text

__all__ = ["content", "run", "text"]  # fixtures


def test_translations_begin_with_the_prefixes(run: Run, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["translate", *run[1], f"input={text}"]
    prefixes = text.with_name("prefixes")
    prefixes.write_text("ein Hund\n" * len(LINES), encoding="utf-8")
    assert main([*base, f"translate.prefix={prefixes}"]) == 0
    assert all(line.startswith("ein Hund") for line in printed(capsys).splitlines())
    prefixes.write_text("ein Hund\n", encoding="utf-8")
    assert main([*base, f"translate.prefix={prefixes}"]) == 2
    assert "fewer prefixes than lines" in capsys.readouterr().err
    prefixes.write_text("ein Hund\n" * (len(LINES) + 1), encoding="utf-8")
    assert main([*base, f"translate.prefix={prefixes}"]) == 0
    assert "warning: there are more prefixes than lines" in capsys.readouterr().err
    assert main([*base, f"translate.prefix={prefixes}", f"output={text}"]) == 2
    assert f"{text} would be written, but is another output or an input" in capsys.readouterr().err
    assert main([*base, "translate.prefix=nowhere"]) == 2
    assert "translate.prefix=nowhere does not exist" in capsys.readouterr().err
