"""scripts/dev/README.md is the index of the developers' tools, and each of them answers --help."""

import re
import runpy
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "scripts" / "dev"
NAMES = sorted(path.parent.name for path in TOOLS.glob("*/__main__.py"))


def test_index_has_a_line_and_a_command_for_every_tool() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*python scripts/dev/(\w+)[ `].*\|$", (TOOLS / "README.md").read_text(), re.M)
    assert rows == [(name, name) for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_tool_describes_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not exit_code(name, monkeypatch, "--help")
    assert capsys.readouterr().out.startswith(f"usage: {name} ")


def exit_code(name: str, monkeypatch: pytest.MonkeyPatch, *words: str) -> str | int | None:
    """Run a tool in this process, with the slash after its name that the shell's completion adds."""
    monkeypatch.syspath_prepend(TOOLS / name)  # as Python does for a folder that it runs
    monkeypatch.setattr(sys, "argv", [f"{TOOLS / name}/", *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(f"{TOOLS / name}/", run_name="__main__")
    return ended.value.code
