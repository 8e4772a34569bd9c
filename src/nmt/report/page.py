"""Write the report of a run as one self-contained HTML file."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from nmt import __version__
from nmt.config.data import TREES, is_text
from nmt.config.keys import written
from nmt.config.tree import Config
from nmt.data.corpora import split_settings, training_splits
from nmt.data.filters.pipeline import filter_counts
from nmt.data.manifest import read_manifest
from nmt.decoding.torch_engine import load_model
from nmt.errors import UserError, for_this_installation
from nmt.estimate.hardware import duration
from nmt.estimate.parameters import count_parameters
from nmt.report import about, charts
from nmt.report.run import Run
from nmt.report.sentences import attention, mark_differences, sentences, worst_and_best
from nmt.report.trees import tree_pairs
from nmt.runs.checkpoint import load
from nmt.runs.checkpoints import resolve

T = TypeVar("T")
BACKTICKS = re.compile("`([^`]+)`")
"""A command in a message, as a terminal shows it."""
SENTENCES = 20
"""The number of worst translations, and of best ones, on the page."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The reason why a part of the page is missing."""

    reason: str


def build_section(build: Callable[[], T]) -> T | Absent:
    """Return a section of the page, or the reason why it cannot be built."""
    try:
        return build()
    except UserError as error:
        return Absent(str(error))


def report(run: Run, checkpoint: str) -> str:
    """Return the page of a run, with the attention of a checkpoint."""
    evaluated = {split: build_section(partial(run.evaluated, split)) for split in run.splits()}
    found = {split: sentences(each) for split, each in evaluated.items() if not isinstance(each, Absent)}

    def of_a_sentence() -> dict[str, Any]:
        if not found:
            raise UserError("no split has been translated yet: run `make eval`")
        loaded = load(resolve(run.folder, checkpoint))
        model, tokenizer = load_model(loaded, loaded.config.model, torch.device("cpu"))
        split, shown = next(iter(found.items()))
        return attention(shown, model, tokenizer, split_settings(run.config.data, split).tag)

    return render(
        "report.html",
        run=run,
        scores=build_section(lambda: about.scores(run)),
        scored=build_section(lambda: about.scored_checkpoint(run.scores(run.splits()[0])) if evaluated else ""),
        curves=build_section(lambda: charts.training_curves(run)),
        data=build_section(lambda: _data(run)),
        remarks={split: run.scores(split).remarks() for split in found},
        translations={
            split: each if isinstance(each, Absent) else worst_and_best(found[split], SENTENCES)
            for split, each in evaluated.items()
        },
        shows_text=is_text(run.config.data.target_lang) or not evaluated,
        trees={split: each if isinstance(each, Absent) else tree_pairs(each) for split, each in evaluated.items()}
        if run.config.data.target_lang == TREES
        else {},
        attention=build_section(of_a_sentence),
        differences=about.differences({"": run.config, "base": Config()}),
    )


def _data(run: Run) -> dict[str, Any]:
    """Return the size of the corpus and of the model, and what the filters dropped."""
    manifest = read_manifest(run.data_folder)
    if not manifest.tasks:
        raise UserError(f"there is no prepared data in {run.data_folder}: run `make data` with the same settings")
    tokenizer = manifest.tokenizer()
    size = count_parameters(run.config.model, tokenizer.source_vocabulary, tokenizer.target_vocabulary)
    names = sorted(manifest.splits("encode"), key=lambda name: (name != "train", name != "valid", name))
    return {
        "filters": {each.name: filter_counts(manifest, each.name) for each in training_splits(run.config.data)},
        "splits": {name: manifest.encoded(name) for name in names},
        "parameters": size._asdict(),
    }


def render(template: str, **sections: Any) -> str:
    """Fill in a template."""
    environment = Environment(
        loader=PackageLoader("nmt.report"),
        autoescape=True,
        undefined=StrictUndefined,  # a missing value is an error
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[[Any], str]] = {
        "written": lambda value: "—" if value in ("", None, []) else written(value),
        "json": _script_json,
        "signature": lambda text: Markup("|<wbr>").join(text.split("|")),  # allows a line break after each bar
        "commands": lambda text: Markup(BACKTICKS.sub(r"<code>\1</code>", str(escape(for_this_installation(text))))),
    }
    environment.filters |= filters
    environment.tests["absent"] = lambda value: isinstance(value, Absent)
    environment.globals |= {
        "about": about,
        "duration": duration,
        "mark": mark_differences,
        "version": __version__,
        "file": lambda name: Markup(environment.loader.get_source(environment, name)[0]),  # type: ignore[union-attr]
    }
    return environment.get_template(template).render(**sections)


def _script_json(content: object) -> Markup:
    """Return JSON in which no text can end the script element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))
