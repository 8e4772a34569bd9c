"""scripts/dev/README.md is the index of the developers' tools, and each of them answers --help and wrong arguments."""

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
    assert not exit_code(name, monkeypatch, "--help")
    assert capsys.readouterr().out.startswith(f"usage: {name} ")


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("compare_steps", "--sources nope nope", "nope has no nmt/__init__.py"),
        ("compare_steps", "--rounds=1", "--rounds: 1 is not at least 2"),
        ("faults", "--only fliped", "NaN in all later steps"),
        ("faults", "--command evaluate", "invalid choice: 'evaluate'"),
        ("faults", "--only SIGUSR1 --command data", "these options leave no fault"),
        ("faults", "--seeds 0", "--seeds: 0 is not at least 1"),
        ("full_size", "--pairs 0", "--pairs: 0 is not"),
        ("load_test", "--model nope --text nope", "--model: nope is not a folder"),
        ("load_test", "--model . --text nope", "cannot read nope"),
        ("load_test", "--model . --text nope laod", "invalid choice: 'laod'"),
        ("measure_step", "foo=1", "there is no setting foo"),
    ],
)
def test_wrong_argument_is_refused_in_one_line(
    name: str,
    words: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(name, monkeypatch, *words.split()) == 2
    *usage, last = capsys.readouterr().err.splitlines()
    assert last.startswith(f"{name}: ")
    assert said in last
    assert not usage or usage[0].startswith(f"usage: {name} ")
    assert not list(tmp_path.iterdir())


def exit_code(name: str, monkeypatch: pytest.MonkeyPatch, *words: str) -> str | int | None:
    """Run a tool in this process, with the slash after its name that the shell's completion adds."""
    monkeypatch.syspath_prepend(TOOLS / name)  # as Python does for a folder that it runs
    monkeypatch.setattr(sys, "argv", [f"{TOOLS / name}/", *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(f"{TOOLS / name}/", run_name="__main__")
    return ended.value.code
