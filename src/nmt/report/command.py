"""`nmt report`: write a page about a run, or a comparison of several runs."""

from dataclasses import replace

import torch

from nmt.config.keys import plain_name
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.decoding.torch_engine import load_model
from nmt.model.interface import TranslationModel
from nmt.report.comparison import as_text, by_name, compare_scores, comparison
from nmt.report.page import build_section, report
from nmt.report.run import Run, read_run
from nmt.runs.checkpoint import load
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import RunLayout
from nmt.runs.scores import scores_to_show
from nmt.text.lines import STANDARD, open_output
from nmt.text.tokenizer import Tokenizer


def run(config: Config) -> None:
    """Write the page and print its path; of a comparison, print the scores and the settings that differ, too."""
    if names := config.compare:
        runs = by_name([_read(replace(config, name=name)) for name in names])
        scores = build_section(lambda: compare_scores(runs))
        print(as_text(runs, scores))
        page, first = comparison(runs, scores), config.runs_folder / names[0]
        usual_path = RunLayout(first).comparison(plain_name("-".join(name.replace("/", "-") for name in names[1:])))
    else:
        single_run = _read(config)
        page = report(single_run, lambda: _load_model(single_run, config.checkpoint))
        usual_path = RunLayout(config.run_folder).report
    output = str(usual_path) if config.output == STANDARD else config.output
    with open_output(output) as file:
        file.write(page.encode())
    print(f"report: {output}")


def _read(config: Config) -> Run:
    return read_run(config.runs_folder, config.name, config.corpora_folder, scores_to_show(config))


def _load_model(run: Run, checkpoint: str) -> tuple[TranslationModel, Tokenizer]:
    loaded = load(resolve(run.folder, checkpoint))
    return load_model(loaded, from_yaml(loaded.config_text).model, torch.device("cpu"))
