"""`nmt report`: write a page about a run, or a comparison of several runs."""

from dataclasses import replace
from pathlib import Path

import torch

from nmt.config.folders import is_address
from nmt.config.saved import from_yaml
from nmt.config.schema import Config
from nmt.decoding.torch_engine import load_model
from nmt.errors import UserError
from nmt.features.report.comparison import by_name, comparison
from nmt.features.report.groups import Groups, group_page
from nmt.features.report.page import report
from nmt.features.report.run import Run, read_run
from nmt.features.report.settings import ComparedRuns
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoints import load, resolve
from nmt.runs.layout import SETTINGS, RunLayout
from nmt.runs.local_copies import fetch_records, fetch_scored_text
from nmt.runs.scores import scores_to_show, short_name
from nmt.text.streams import STANDARD, open_output
from nmt.text.tokenizer import Tokenizer


def run(config: Config) -> None:
    """Write the page and print its path."""
    if config.of(ComparedRuns).compare:
        page = group_page(read_groups(config)) if names_groups(config) else comparison(by_name(read_runs(config)))
        usual_path = _comparison_path(config)
    else:
        single_run = _read(config)
        page = report(single_run, lambda: _load_model(single_run, config.checkpoint))
        usual_path = RunLayout(config.run_folder).report
    output, content = str(usual_path) if config.output == STANDARD else config.output, page.encode()
    with open_output(output) as file:
        file.write(content)
    print(f"report: {output} ({len(content) / 1e6:.1f} MB)")


def read_runs(config: Config) -> list[Run]:
    """Read the runs to compare, each with the scores of the checkpoint or export that the settings name."""
    return [_read_other(config, name) for name in config.of(ComparedRuns).compare]


def names_groups(config: Config) -> bool:
    """Return whether the settings name groups of runs by patterns, such as base-*."""
    return any(_is_pattern(name) for name in config.of(ComparedRuns).compare)


def read_groups(config: Config) -> Groups:
    """Read the runs of each group; a name without a wildcard is a group of one run."""
    return {pattern: [_read_other(config, name) for name in _matching(config, pattern)]
            for pattern in config.of(ComparedRuns).compare}  # fmt: skip


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _matching(config: Config, pattern: str) -> list[str]:
    """Return the names of the runs that match a pattern, in which * and ? do not stand for a slash."""
    if not _is_pattern(pattern):
        return [pattern]
    if "**" in pattern or Path(pattern).is_absolute():
        raise UserError(f"{pattern} is no pattern of runs: name runs, or patterns such as base-*")
    if is_address(config.paths.outputs):
        raise UserError(
            f"{pattern} is a pattern, and addresses such as paths.outputs={config.paths.outputs} do not list their "
            "runs: name the runs"
        )
    outputs, plain = config.runs_folder, pattern.replace("[", "[[]")
    found = sorted(file.parent.relative_to(outputs).as_posix() for file in outputs.glob(f"{plain}/{SETTINGS}"))
    if not found:
        raise UserError(f"no run in {outputs} matches {pattern}: name runs, or patterns such as base-*")
    return found


def _comparison_path(config: Config) -> Path:
    """Return the usual path of a comparison, in the folder of the first run."""
    first, *others = [name.replace("/", "-") for name in config.of(ComparedRuns).compare]
    run = _matching(config, config.of(ComparedRuns).compare[0])[0]
    words = [first, *others] if _is_pattern(first) else others
    plain = "-".join(words).translate(str.maketrans("*?", "__"))
    return RunLayout(config.runs_folder / run).comparison(short_name(plain))


def _read(config: Config) -> Run:
    return read_run(config.runs_folder, config.name, config.corpora_folder, scores_to_show(config))


def _read_other(config: Config, name: str) -> Run:
    """Read a run, and fetch it and its text before that if they are elsewhere."""
    config = replace(config, name=name)
    fetch_records(config)
    run = _read(config)
    fetch_scored_text(config, run.config.data, run.splits())
    return run


def _load_model(run: Run, checkpoint: str) -> tuple[TranslationModel, Tokenizer]:
    loaded = load(resolve(run.folder, checkpoint))
    return load_model(loaded, from_yaml(loaded.config_text).model, torch.device("cpu"))
