"""Imports run downwards only, and slow or dangerous imports live in one place.

`python -m tests.unit.test_architecture` writes the tables of layers and features in ARCHITECTURE.md.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest

import nmt
from nmt.config.choices import CHOICES
from nmt.discovery import features, imported
from nmt.feature import Feature

SOURCE = Path(nmt.__file__).parent
DOCUMENT = Path(__file__).parents[2] / "ARCHITECTURE.md"
BEGIN = "<!-- {}: `python -m tests.unit.test_architecture` writes this table -->"
END = "<!-- end of {} -->"


class Layer(NamedTuple):
    """Modules or packages that do not import each other, and their purpose."""

    purpose: str
    names: tuple[str, ...]


LIBRARIES = ("nmt.parsing", "nmt.terms", "nmt.paper", "nmt.page", "nmt.marian", "nmt.measuring")
"""What several features share: section 6.3, terms in translations, figures of the paper, a page to try models, a file
format, and measurements of a device."""
LAYERS = [
    Layer("the package run as a program", ("nmt.__main__",)),
    Layer("the command line: names, help, exit codes", ("nmt.cli",)),
    Layer("what can be deleted: a folder per feature, which may import all below", ("nmt.features",)),
    Layer("libraries of features, which the core does not use: trees, terms, a page, files, measurements", LIBRARIES),
    Layer("one module per command", ("nmt.commands",)),
    Layer("section 5 of the paper: steps, validation, checkpointing", ("nmt.training",)),
    Layer("scores of translations", ("nmt.evaluation",)),
    Layer("section 6.1: beam search, and the engines that translate", ("nmt.decoding",)),
    Layer("the folder of a run: checkpoints, averages, metrics", ("nmt.runs",)),
    Layer("text to tokens to batches", ("nmt.data",)),
    Layer("parameters, memory, time and money, by formula", ("nmt.estimate",)),
    Layer("section 3: the Transformer", ("nmt.model",)),
    Layer("fused operations: Triton for GPUs, C for CPUs, plain PyTorch elsewhere", ("nmt.model.kernels",)),
    Layer("the tokenizer and lines of text", ("nmt.text",)),
    Layer("devices, processes, threads and signals", ("nmt.compute",)),
    Layer("whole files and locked folders", ("nmt.storage",)),
    Layer("settings: all of Hydra and OmegaConf", ("nmt.config",)),
    Layer("which features there are", ("nmt.discovery",)),
    Layer("what a feature declares", ("nmt.feature",)),
    Layer("whether an extension was made for this version", ("nmt.versions",)),
    Layer("the processes that torchrun has started", ("nmt.launched",)),
    Layer("messages to the user", ("nmt.errors",)),
]
"""From top to bottom. A name may import itself and lower layers; names of one layer do not import each other."""

TOUR = {
    "text/tokenizer.py": "a line of text becomes word pieces, and word pieces become a line of text",
    "data/batches.py": "an epoch becomes a list of global batches (section 5.1)",
    "model/packed.py": "sentences end to end, without padding",
    "data/loader.py": "a global batch becomes micro-batches of tensors",
    "model/word_vectors.py": "word pieces become vectors, and vectors become scores of words (3.4)",
    "model/positions/sinusoidal.py": "positions become vectors (3.5)",
    "model/attention.py": "scaled dot-product attention (3.2)",
    "model/layers.py": "sub-layers with residual connections and norms (3.1 and 3.3)",
    "model/transformer.py": "the encoder and the decoder (figure 1)",
    "training/loss.py": "cross-entropy with smoothed labels (5.4)",
    "training/objective.py": "what a step minimises",
    "training/schedule.py": "the learning rate (5.3)",
    "training/optimizer.py": "Adam (5.3)",
    "training/gradient.py": "the gradient of a batch, whose micro-batches are computed one by one or in parallel",
    "training/trainer.py": "one update of the weights",
    "decoding/beam.py": "beam search with the length penalty (6.1)",
    "decoding/torch_engine.py": "the model gives the search the scores of the next word",
}
"""What a reader meets from a line of text to an updated weight and back to a translation, in this order."""
MAX_TOUR_FILES, MAX_TOUR_LINES = 20, 2500

SEAMS = [each.name for each in fields(Feature) if each.name not in ("summary", "page")]
"""What a feature may fill."""

HOMES = {
    "hydra": {"nmt.config.compose", "nmt.config.flags", "nmt.config.messages", "nmt.config.multirun"},
    "omegaconf": {"nmt.config.compose", "nmt.config.messages", "nmt.config.multirun", "nmt.config.saved"},
    "torch.distributed": {
        *(f"nmt.compute.{name}" for name in ("distributed", "heartbeat", "joining", "replication")),
        "nmt.features.sharding.divided",
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


def layers_table() -> str:
    """Return the layers as Markdown."""
    lines = ["| layer | modules | purpose |", "|---|---|---|"]
    for number, layer in enumerate(LAYERS, start=1):
        modules = ", ".join(f"`{name.removeprefix('nmt.')}`" for name in layer.names)
        lines.append(f"| {number} | {modules} | {layer.purpose} |")
    return "\n".join(lines)


def features_table() -> str:
    """Return the features as Markdown, with a link to the page of each and the seams that it fills."""
    lines = ["| feature | what it is | seams |", "|---|---|---|"]
    for name, feature in features().items():
        seams = ", ".join(f"`{each}`" for each in SEAMS if getattr(feature, each))
        lines.append(f"| [`{name}`]({feature.page}) | {feature.summary} | {seams} |")
    return "\n".join(lines)


def tour_table() -> str:
    """Return the files of the tour as Markdown."""
    rows = [f"| {number} | `{name}` | {what} |" for number, (name, what) in enumerate(TOUR.items(), 1)]
    return "\n".join(["| | file | in it |", "|---|---|---|", *rows])


TABLES = {"layers": layers_table, "tour": tour_table, "features": features_table}


def with_tables(document: str) -> str:
    """Return a document with its tables replaced by those of this module."""
    for name, table in TABLES.items():
        before, begin, rest = document.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        assert begin, f"{BEGIN.format(name)} is missing"
        assert end, f"{END.format(name)} is missing"
        document = f"{before}{begin}\n{table()}\n{end}{after}"
    return document


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


def test_a_feature_imports_no_other_feature_and_the_core_imports_none() -> None:
    crossing = [
        (found.importer, found.imported)
        for found in ALL
        if found.imported.startswith("nmt.features.") and found.importer.split(".")[:3] != found.imported.split(".")[:3]
    ]
    assert crossing == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_core_does_not_use_a_library_of_features(library: str) -> None:
    importers = {found.importer for found in ALL if within(found.imported, library)}
    assert importers
    homes = (library, "nmt.features")
    assert [name for name in importers if not any(within(name, each) for each in homes)] == []


ORDINARY_WORDS = {"alignments", "constraints", "demo", "exports", "imports", "report", "sampling", "serving", "trees"}
"""Names of features that the core may use in another sense, or that are part of a path or message."""
PAST = ("nmt.config.renamed", "nmt.paper")
"""Modules that name what features have: settings by their former names, and the tables of the paper."""


@pytest.mark.parametrize("feature", sorted(set(features()) - ORDINARY_WORDS))
def test_the_core_does_not_know_the_name_of_a_feature(feature: str) -> None:
    spellings = {feature, feature.replace("_", " "), feature.replace("_", "-"), feature.removesuffix("s")}
    name = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, spellings))})(?![a-z])", re.IGNORECASE)
    core = [each for each in MODULES if not any(within(each, other) for other in ("nmt.features", *PAST))]
    assert [each for each in core if name.search(FILES[each].read_text(encoding="utf-8"))] == []


def spellings(feature: Feature) -> Iterator[str]:
    """Yield how others could name what a feature declares, but for settings whose values are open to all features."""
    for group, added in feature.settings.items():
        names = [f"{group}.{each.name}" for each in fields(imported(added.code))]
        yield from (name for name in names if group and name not in CHOICES)
    for setting, choices in feature.all_choices.items():
        yield from (f"{setting}={value}" for value in choices)
    yield from (f"`nmt {command}" for command in feature.commands)


@pytest.mark.parametrize("feature", sorted(features()))
def test_no_feature_names_a_setting_a_value_or_a_command_of_another_one(feature: str) -> None:
    home = f"nmt.features.{feature}"
    names = "|".join(map(re.escape, [home, *spellings(features()[feature])]))
    named = re.compile(rf"(?<![\w.])({names})(?!\w)")
    others = [each for each in MODULES if within(each, "nmt.features") and not within(each, home)]
    assert [each for each in others if named.search(FILES[each].read_text(encoding="utf-8"))] == []


def test_every_name_in_a_layer_is_an_existing_module() -> None:
    assert [name for layer in LAYERS for name in layer.names if name not in MODULES] == []


def test_architecture_document_shows_the_same_layers() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == with_tables(DOCUMENT.read_text(encoding="utf-8")), (
        "ARCHITECTURE.md differs: run `python -m tests.unit.test_architecture`"
    )


def test_the_tour_is_short() -> None:
    files = [SOURCE / name for name in TOUR]
    assert len(files) <= MAX_TOUR_FILES
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= MAX_TOUR_LINES


def test_architecture_document_names_everything_that_a_feature_declares() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert [name for name in SEAMS if name not in shown] == []


def test_new_tables_replace_only_the_text_between_their_marks() -> None:
    old = "".join(f"before\n{BEGIN.format(name)}\n| an old table |\n{END.format(name)}\nafter\n" for name in TABLES)
    new = with_tables(old)
    assert new.splitlines()[:3] == ["before", BEGIN.format("layers"), "| layer | modules | purpose |"]
    assert with_tables(new) == new
    assert f"| {len(LAYERS)} | `errors` | messages to the user |\n{END.format('layers')}\nafter\nbefore\n" in new
    assert new.endswith(f"{END.format('features')}\nafter\n")


def test_slow_packages_are_imported_inside_functions_only() -> None:
    assert [found for found in ALL if found.imported.split(".")[0] in SLOW_PACKAGES and found.at_start] == []


def test_schema_imports_only_the_standard_library() -> None:
    parts = ("schema", "advice", "capabilities", "checks", "choices", "folders")
    config = tuple(f"nmt.config.{part}" for part in parts)
    core = (*config, "nmt.discovery", "nmt.feature", "nmt.features", "nmt.errors", "nmt.launched")
    groups = [group.code.partition(":")[0] for each in features().values() for group in each.settings.values()]
    inside = (*core, *groups)
    imported = {found.imported for found in ALL if found.importer in inside or within(found.importer, core[0])}
    others = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert [name for name in others if not any(within(name, each) for each in inside)] == []


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


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
