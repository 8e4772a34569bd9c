"""Imports run downwards only, and what is dear or dangerous is imported in one place."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nmt

SOURCE = Path(nmt.__file__).parent

LAYERS = [
    ["nmt.__main__"],
    ["nmt.cli"],
    ["nmt.stages.demo", "nmt.stages.table3"],
    ["nmt.stages"],
    ["nmt.config.multirun", "nmt.config.completion"],
    ["nmt.config.compose"],
    ["nmt.training.loop", "nmt.training.fit", "nmt.table3", "nmt.evaluation", "nmt.report", "nmt.export"],
    ["nmt.decoding.deployed"],
    ["nmt.decoding.translate"],
    ["nmt.decoding.engine"],
    ["nmt.training.keep"],
    ["nmt.training.step", "nmt.training.watch", "nmt.training.signals"],
    ["nmt.data"],
    ["nmt.runs"],
    ["nmt.distributed"],
    ["nmt.machine"],
    ["nmt.decoding.sampling"],
    [
        "nmt.model",
        "nmt.text",
        "nmt.decoding.beam",
        "nmt.training.loss",
        "nmt.training.schedule",
    ],
    ["nmt.config.keys"],
    ["nmt.config.schema", "nmt.files", "nmt.lock", "nmt.devices", "nmt.threads", "nmt.copies", "nmt.cores"],
    ["nmt.errors"],
]
"""From top to bottom. A name may import itself and what lies below; those that share a layer do not know each other."""

HOMES = {
    "hydra": ("nmt.config.compose", "nmt.config.multirun"),
    "omegaconf": ("nmt.config.compose", "nmt.config.multirun"),
    "torch.distributed": ("nmt.distributed",),
    "torch.nn.parallel": ("nmt.distributed",),
    "wandb": ("nmt.runs.tracking",),
    "pickle": ("nmt.runs.format",),  # its error alone, which torch.load raises
}
"""Packages that only these modules import."""

DEAR = ("datasets", "wandb")
"""Packages that are imported inside the function that uses them."""


class Import(NamedTuple):
    importer: str
    imported: str
    at_start: bool


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")}


def imports(name: str, tree: ast.Module) -> Iterator[Import]:
    at_start = set(tree.body)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(name, alias.name, node in at_start)
            case ast.ImportFrom(module=str(package), level=0, names=names):
                for alias in names:
                    inner = f"{package}.{alias.name}"
                    yield Import(name, inner if inner in MODULES else package, node in at_start)
            case ast.ImportFrom():
                raise AssertionError(f"{name}: relative import")


ALL = [found for name, tree in MODULES.items() for found in imports(name, tree)]


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def place(module: str) -> tuple[int, str]:
    """Layer and the name in it that a module belongs to, by the longest that fits."""
    fitting = [(index, name) for index, names in enumerate(LAYERS) for name in names if within(module, name)]
    assert fitting, f"{module} has no place in LAYERS: give it one"
    return max(fitting, key=lambda found: len(found[1]))


def downwards(found: Import) -> bool:
    (above, importer), (below, imported) = place(found.importer), place(found.imported)
    return importer == imported or above < below


def is_empty(module: str) -> bool:
    """Packages that say nothing have no layer: `nmt.training` spans several."""
    return module in MODULES and all(isinstance(node, ast.Expr | ast.Assign) for node in MODULES[module].body)


def test_imports_run_downwards() -> None:
    ours = [found for found in ALL if within(found.imported, "nmt") and not is_empty(found.imported)]
    assert len(ours) > 20
    assert [found for found in ours if not downwards(found)] == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("nmt.cli", "nmt.errors", True),
        ("nmt.data.loader", "nmt.data.store", True),
        ("nmt.text.tokenizer", "nmt.model.packed", False),
        ("nmt.model.transformer", "nmt.data.store", False),
        ("nmt.decoding.beam", "nmt.decoding.translate", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, allowed: bool) -> None:
    assert downwards(Import(importer, imported, at_start=True)) is allowed


@pytest.mark.parametrize("package", HOMES)
def test_only_its_home_imports(package: str) -> None:
    importers = {found.importer for found in ALL if within(found.imported, package)}
    assert importers <= set(HOMES[package])


def test_dear_packages_are_imported_where_they_are_used() -> None:
    assert [found for found in ALL if found.imported.split(".")[0] in DEAR and found.at_start] == []


def test_the_schema_needs_the_standard_library_alone() -> None:
    imported = {found.imported for found in ALL if found.importer in ("nmt.config.schema", "nmt.errors")}
    assert {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names} == {"nmt.errors"}


def test_the_model_knows_only_its_own_settings() -> None:
    for name, tree in MODULES.items():
        if within(name, "nmt.model"):
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert not names & {"Config", "TrainingConfig", "RuntimeConfig"}, name


def test_torch_load_takes_weights_only() -> None:
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in ast.unparse(node), name


def test_data_preparation_starts_without_torch() -> None:
    program = "import sys, nmt.stages.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0
