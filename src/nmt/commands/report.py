"""`nmt report`: write a page about a run, or a comparison of several runs."""

from dataclasses import replace
from pathlib import Path

import torch

from nmt.config.saved import from_yaml
from nmt.config.schema import Config
from nmt.decoding.torch_engine import load_model
from nmt.model.interface import TranslationModel
from nmt.report.comparison import by_name, comparison
from nmt.report.page import report
from nmt.report.run import Run, read_run
from nmt.runs.checkpoints import load, resolve
from nmt.runs.layout import RunLayout
from nmt.runs.scores import scores_to_show
from nmt.storage.files import write_text
from nmt.text.streams import STANDARD
from nmt.text.tokenizer import Tokenizer


def run(config: Config) -> None:
    """Write the page and print its path."""
    if config.compare:
        runs = by_name(read_runs(config))
        others = "-".join(name.replace("/", "-") for name in config.compare[1:])
        page = comparison(runs)
        usual_path = RunLayout(Path(config.paths.outputs) / config.compare[0]).comparison(others)
    else:
        single_run = _read(config)
        page = report(single_run, lambda: _load_model(single_run, config.checkpoint))
        usual_path = RunLayout(config.run_folder).report
    path = usual_path if config.output == STANDARD else Path(config.output)
    write_text(path, page)
    print(f"report: {path} ({len(page.encode()) / 1e6:.1f} MB)")


def read_runs(config: Config) -> list[Run]:
    """Read the runs to compare, each with the scores of the checkpoint or export that the settings name."""
    return [_read(replace(config, name=name)) for name in config.compare]


def _read(config: Config) -> Run:
    return read_run(config.run_folder, Path(config.paths.data), from_yaml, scores_to_show(config))


def _load_model(run: Run, checkpoint: str) -> tuple[TranslationModel, Tokenizer]:
    loaded = load(resolve(run.folder, checkpoint))
    return load_model(loaded, from_yaml(loaded.config_text).model, torch.device("cpu"))
