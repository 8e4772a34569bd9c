"""Features of other packages: found, checked, left out if broken, and named in the settings of runs that use them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nmt

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example_extension"
SAVE = "from nmt.config.compose import compose; from nmt.config.saved import to_yaml; import sys;" + (
    "sys.stdout.write(to_yaml(compose(sys.argv[1:])))"
)
LOAD = "from nmt.config.saved import from_yaml; import sys; from_yaml(sys.stdin.read())"


def install(site: Path, *, name: str = "numbers", value: str = "nmt_numbers:FEATURE", needs: str = "<0.2") -> None:
    """Write what pip would: the package, and its metadata with the entry point."""
    shutil.copytree(EXAMPLE / "src", site, dirs_exist_ok=True)
    metadata = site / f"nmt_{name}-1.0.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: nmt-{name}\nVersion: 1.0\nRequires-Dist: nmt-transformer{needs}\n"
    (metadata / "METADATA").write_text(head)
    (metadata / "entry_points.txt").write_text(f"[nmt.features]\n{name} = {value}\n")


def run(site: Path | None, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    paths = [str(Path(nmt.__file__).parents[1]), *([str(site)] if site else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, input=text)


def test_an_extension_is_listed_and_its_settings_have_help(tmp_path: Path) -> None:
    install(tmp_path)
    listed = run(tmp_path, "-m", "nmt", "features")
    assert "numbers: an example" in listed.stdout
    assert "settings: training.confidence_penalty\n  data.source: numbers" in listed.stdout
    assert listed.stderr == ""
    assert "training.confidence_penalty (float, 0.0)" in run(tmp_path, "-m", "nmt", "train", "--help").stdout
    wrong = run(tmp_path, "-c", SAVE, "training.confidence_penalty=-1")
    assert "training.confidence_penalty=-1" in wrong.stderr


def test_listing_the_features_does_not_import_torch(tmp_path: Path) -> None:
    install(tmp_path)
    assert run(
        tmp_path, "-c", "import nmt.discovery, sys; nmt.discovery.features(); print('torch' in sys.modules)"
    ).stdout == ("False\n")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"value": "nmt_absent:FEATURE"}, "ModuleNotFoundError: No module named 'nmt_absent'"),
        ({"value": "nmt_numbers:ABSENT"}, "has no attribute 'ABSENT'"),
        ({"value": "nmt_numbers.settings:uses"}, "is not a nmt.feature.Feature"),
        ({"needs": ">=7"}, "it needs nmt-transformer>=7, and this is version"),
        ({"name": "z_loss"}, "there is another feature z_loss"),
    ],
)
def test_a_broken_extension_is_one_line_and_turns_only_itself_off(
    tmp_path: Path, broken: dict[str, str], reason: str
) -> None:
    install(tmp_path, **broken)
    listed = run(tmp_path, "-m", "nmt", "features")
    assert listed.returncode == 0
    assert "numbers: an example" not in listed.stdout
    assert "moving_average: " in listed.stdout
    assert listed.stderr.count("\n") == 1
    assert listed.stderr.startswith("nmt: the extension ")
    assert reason in listed.stderr


def test_two_extensions_with_the_same_setting_leave_the_first(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path, name="others")
    listed = run(tmp_path, "-m", "nmt", "features")
    assert "numbers: an example" in listed.stdout
    assert "others (nmt-others 1.0) is off: another feature has" in listed.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("settings.py", "confidence_penalty", "steps", "there is another setting training.steps"),
        ("settings.py", "confidence_penalty", "z_loss", "setting training.z_loss"),
        ("settings.py", "import dataclass\n", "import absent\n", "ImportError: cannot import name 'absent'"),
        ("settings.py", ": float = 0.0", ": float = -1", "training.confidence_penalty=-1 must be"),
        (
            "__init__.py",
            "summary",
            "packages=('numpy',), summary",
            "TypeError: packages of a Feature is a Mapping, not",
        ),
        ("__init__.py", '"numbers": Choice', '"files": Choice', "there is another setting data.source=files"),
        ("__init__.py", "summary", "commands={'train': Command('', '', ())}, summary", "another command train"),
    ],
)
def test_an_extension_whose_names_or_settings_cannot_be_used_is_off(
    tmp_path: Path, file: str, old: str, new: str, reason: str
) -> None:
    install(tmp_path)
    changed = tmp_path / "nmt_numbers" / file
    text = changed.read_text(encoding="utf-8").replace("import Choice,", "import Choice, Command,")
    assert old in text
    changed.write_text(text.replace(old, new), encoding="utf-8")
    shown = run(tmp_path, "-m", "nmt", "train", "--help")
    assert shown.returncode == 0
    assert "confidence_penalty" not in shown.stdout
    assert "training.steps" in shown.stdout
    assert [shown.stderr.count("\n"), reason in shown.stderr] == [1, True], shown.stderr


def test_values_of_an_extension_that_is_off_are_refused(tmp_path: Path) -> None:
    install(tmp_path)
    changed = tmp_path / "nmt_numbers" / "settings.py"
    changed.write_text(changed.read_text(encoding="utf-8").replace("confidence_penalty", "steps"), encoding="utf-8")
    refused = run(tmp_path, "-m", "nmt", "data", "data.source=numbers").stderr.splitlines()[-1]
    assert "data.source=numbers" in refused


@pytest.mark.parametrize("used", ["training.confidence_penalty=0.5", "data.source=numbers"])
def test_a_run_says_which_extension_it_needs(tmp_path: Path, used: str) -> None:
    install(tmp_path)
    saved = run(tmp_path, "-c", SAVE, used).stdout
    assert run(tmp_path, "-c", LOAD, text=saved).returncode == 0
    refused = run(None, "-c", LOAD, text=saved).stderr.splitlines()[-1]
    assert "this run uses the extension numbers" in refused
    assert "pip install nmt-numbers==1.0" in refused


def test_a_run_that_does_not_use_an_extension_is_saved_as_without_it(tmp_path: Path) -> None:
    install(tmp_path)
    assert run(tmp_path, "-c", SAVE).stdout == run(None, "-c", SAVE).stdout
