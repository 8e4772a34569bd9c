"""Imports run downwards only, and slow or dangerous imports live in one place."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import nmt

SOURCE = Path(nmt.__file__).parent
LEAVES = "demo export report serving synthesis table3"
"""Packages of one feature, which only the command line and `imports` import."""
LAYERS = f"""
__main__ | cli | imports | {LEAVES} | commands | own_text | training | evaluation | parsing | decoding | runs | data
| estimate | model | text | compute | storage | config | packages | launched errors
"""
"""From top to bottom. A package may import itself and lower layers."""
ORDER = {name: number for number, layer in enumerate(LAYERS.split("|")) for name in layer.split()}
HOMES: dict[str, tuple[str, ...]] = {
    "hydra": ("nmt.config",),
    "omegaconf": ("nmt.config",),
    "torch.distributed": ("nmt.compute", "nmt.training.divided", "nmt.training.optimizer", "nmt.training.replicas"),
    "wandb": ("nmt.runs.services",),
    "pickle": (),
}
"""Packages that only these modules import."""
AT_START = ("datasets", "wandb")
"""Packages that are imported inside the function that uses them, because importing them takes long."""


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


TREES = {module_name(file): ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")}


@cache
def imports(name: str) -> list[tuple[str, bool]]:
    """Return the names that a module imports, and whether it does so when it is imported itself."""
    found = list[tuple[str, bool]]()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found += [(f"{start}{alias.name}", node in TREES[name].body) for alias in node.names]
    return found


def layer(module: str) -> int:
    return ORDER[module.split(".")[1]]


def test_imports_run_downwards() -> None:
    found = [(name, module) for name in TREES for module, _ in imports(name) if name != "nmt" and module[:4] == "nmt."]
    ours = [(name, module) for name, module in found if module in TREES or module.count(".") > 1]  # no nmt.__version__
    others = [(name, module) for name, module in ours if name.split(".")[1] != module.split(".")[1]]
    assert [(name, module) for name, module in others if layer(module) <= layer(name)] == []


@pytest.mark.parametrize("package", HOMES)
def test_a_confined_package_is_imported_only_by_its_home_modules(package: str) -> None:
    users = {name for name in TREES for module, _ in imports(name) if f"{module}.".startswith(f"{package}.")}
    assert {name for name in users if not name.startswith(HOMES[package])} == set()


def test_slow_packages_are_imported_inside_functions_only() -> None:
    found = [(name, module) for name in TREES for module, at_start in imports(name) if at_start]
    assert [each for each in found if each[1].split(".")[0] in AT_START] == []


def test_torch_load_is_always_called_with_weights_only() -> None:
    calls = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert all("weights_only=True" in ast.unparse(each) for each in calls if ast.unparse(each.func) == "torch.load")


def test_data_preparation_does_not_import_torch() -> None:
    program = "import sys, nmt.commands.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0
