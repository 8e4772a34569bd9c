"""Imports run downwards only, and slow or dangerous imports live in one place."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nmt

SOURCE = Path(nmt.__file__).parent


class Layer(NamedTuple):
    """Modules or packages that do not import each other, and their purpose."""

    purpose: str
    names: tuple[str, ...]


LIBRARIES = ("nmt.parsing", "nmt.paper")
"""What several features share."""
LAYERS = [
    Layer("the package run as a program", ("nmt.__main__",)),
    Layer("the command line: names, help, exit codes", ("nmt.cli",)),
    Layer("what can be deleted: a folder per feature, which may import all below", ("nmt.features",)),
    Layer("libraries of features, which the core does not use: trees, the paper's figures", LIBRARIES),
    Layer("one module per command", ("nmt.commands",)),
    Layer("section 5 of the paper: steps, validation, checkpointing", ("nmt.training",)),
    Layer("scores of translations", ("nmt.evaluation",)),
    Layer("section 6.1: beam search, and the engines that translate", ("nmt.decoding",)),
    Layer("the folder of a run: checkpoints, averages, metrics", ("nmt.runs",)),
    Layer("text to tokens to batches", ("nmt.data",)),
    Layer("parameters, memory and time, by formula", ("nmt.estimate",)),
    Layer("section 3: the Transformer", ("nmt.model",)),
    Layer("fused operations: Triton for GPUs, C for CPUs, plain PyTorch elsewhere", ("nmt.model.kernels",)),
    Layer("the tokenizer and lines of text", ("nmt.text",)),
    Layer("devices, processes, threads and signals", ("nmt.compute",)),
    Layer("whole files and locked folders", ("nmt.storage",)),
    Layer("optional packages", ("nmt.compute.packages",)),
    Layer("settings: all of Hydra and OmegaConf", ("nmt.config",)),
    Layer("which features there are", ("nmt.discovery",)),
    Layer("what a feature declares", ("nmt.feature",)),
    Layer("the processes that torchrun has started", ("nmt.launched",)),
    Layer("messages to the user", ("nmt.errors",)),
]
"""From top to bottom. A name may import itself and lower layers; names of one layer do not import each other."""

HOMES = {
    "hydra": {"nmt.config.compose", "nmt.config.flags", "nmt.config.messages", "nmt.config.multirun"},
    "omegaconf": {"nmt.config.compose", "nmt.config.messages", "nmt.config.multirun", "nmt.config.saved"},
    "torch.distributed": {
        *(f"nmt.compute.{name}" for name in ("distributed", "joining", "replication")),
        "nmt.training.divided",
    },
    "torch.nn.parallel": {"nmt.compute.replication"},
    "wandb": {"nmt.features.tracking.wandb"},
    "pickle": set[str](),
}
"""Packages that only these modules import."""

INTERFACE = "nmt"
"""The package itself has no layer: it only forwards the names of the Python interface to their modules."""

SLOW_PACKAGES = ("datasets", "wandb")
"""Packages that are imported inside the function that uses them, because importing them takes long."""


class Import(NamedTuple):
    importer: str
    imported: str
    at_start: bool


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(file): file for file in SOURCE.rglob("*.py")}
MODULES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}


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
    """Return the layer of a module and the longest name in it that contains the module."""
    fitting = [(index, name) for index, layer in enumerate(LAYERS) for name in layer.names if within(module, name)]
    assert fitting, f"{module} has no place in LAYERS: give it one"
    return max(fitting, key=lambda found: len(found[1]))


def downwards(found: Import) -> bool:
    (above, importer), (below, imported) = place(found.importer), place(found.imported)
    return importer == imported or above < below


def is_empty(module: str) -> bool:
    """Return whether a module has no code. Such packages have no layer, because their modules may be in several."""
    return module in MODULES and all(isinstance(node, ast.Expr | ast.Assign) for node in MODULES[module].body)


def test_imports_run_downwards() -> None:
    ours = [found for found in ALL if within(found.imported, "nmt") and not is_empty(found.imported)]
    ours = [found for found in ours if INTERFACE not in (found.importer, found.imported)]
    assert len(ours) > 20
    assert [found for found in ours if not downwards(found)] == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("nmt.cli", "nmt.errors", True),
        ("nmt.data.loader", "nmt.data.store", True),
        ("nmt.text.tokenizer", "nmt.model.packed", False),
        ("nmt.model.transformer", "nmt.data.store", False),
        ("nmt.decoding.beam", "nmt.training.trainer", False),
    ],
)
def test_a_module_may_import_only_modules_of_lower_layers(importer: str, imported: str, allowed: bool) -> None:
    assert downwards(Import(importer, imported, at_start=True)) is allowed


@pytest.mark.parametrize("package", HOMES)
def test_a_confined_package_is_imported_only_by_its_home_modules(package: str) -> None:
    assert {found.importer for found in ALL if within(found.imported, package)} == HOMES[package]


def test_every_name_in_a_layer_is_an_existing_module() -> None:
    assert [name for layer in LAYERS for name in layer.names if name not in MODULES] == []


def test_slow_packages_are_imported_inside_functions_only() -> None:
    assert [found for found in ALL if found.imported.split(".")[0] in SLOW_PACKAGES and found.at_start] == []


def test_model_modules_use_only_the_settings_of_the_model() -> None:
    for name, tree in MODULES.items():
        if within(name, "nmt.model"):
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert not names & {"Config", "TrainingConfig", "RuntimeConfig"}, name


def test_torch_load_is_always_called_with_weights_only() -> None:
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in ast.unparse(node), name


def test_the_package_itself_imports_other_modules_only_when_a_name_is_used() -> None:
    assert not [
        found for found in ALL if found.importer == INTERFACE and within(found.imported, "nmt") and found.at_start
    ]


def test_data_preparation_does_not_import_torch() -> None:
    program = "import sys, nmt.commands.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_training_imports_neither_pyarrow_nor_sacrebleu_nor_parsing_before_it_uses_them() -> None:
    unused = {"pyarrow", "sacrebleu", "nmt.parsing.trees"}
    program = f"import sys, nmt.commands.train; sys.exit(bool({unused} & {{*sys.modules}}))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0
