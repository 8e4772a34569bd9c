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


def test_all_tools_are_called_in_the_same_way() -> None:
    """Nothing but a folder with a program is a tool; what they share is a folder without one."""
    others = {path.name for path in TOOLS.iterdir() if path.name not in NAMES and path.name != "__pycache__"}
    assert others == {"README.md", "shared"}


@pytest.mark.parametrize("name", NAMES)
def test_tool_describes_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(TOOLS / name)  # as Python does for a folder that it runs
    monkeypatch.setattr(sys, "argv", [str(TOOLS / name), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(TOOLS / name), run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith(f"usage: {name} ")
