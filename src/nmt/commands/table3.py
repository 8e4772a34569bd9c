"""`nmt table3`: train and score the rows of the paper's Table 3, and compare them with its figures."""

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from nmt.commands import data, evaluate, train
from nmt.config.compose import compose
from nmt.config.multirun import multirun, split
from nmt.config.saved import flatten, read_settings
from nmt.config.schema import Config
from nmt.errors import ConfigError, UserError
from nmt.paper.table3 import TABLE_3
from nmt.report.table3 import as_markdown, choose_rows, is_done, read_result, small_scale
from nmt.runs.compatibility import check_resumable
from nmt.storage.files import write_text
from nmt.text.tokenizer import Tokenizer

ROWS_FOLDER = "table3/"
"""The folder of the rows in conf/experiment/."""
STAGES = {"train": train.run, "eval": evaluate.run}
INTRODUCTIONS = {
    "full": "The columns `paper` hold the paper's figures.\n\n",
    "small": "The rows are shrunk and trained on the demo corpus, to show that they run. The columns `paper` hold the "
    "figures of the full size: compare only the differences between rows.\n\n",
}
"""The text above the table, by scale."""


def run(overrides: list[str]) -> None:
    """Train and score the chosen rows that are not done, and write the table."""
    words, launching = split(overrides)
    config = compose(words)
    for word in words:
        if word.lstrip("+").startswith(("experiment=", "name=")):
            raise ConfigError(f"{word}: each row has its own name; choose rows with table3.rows=[base,a1]")
    names = choose_rows(config.table3.rows)
    unfinished = [name for name in names if not _is_done(settings(name, words))]
    for name in names:
        if name not in unfinished:
            print(f"{name}: already done", flush=True)
    try:
        if unfinished:
            data.run(settings(unfinished[0], words))
            experiments = ",".join(ROWS_FOLDER + name for name in unfinished)
            multirun(train_and_score, [f"experiment={experiments}", *words, *launching], config.paths.outputs)
    finally:
        _write_table(words)
    if failed := [name for name in unfinished if not is_done(settings(name, words))]:
        raise UserError(f"no results for {', '.join(failed)}: read the errors above, or in the logs of the launcher")


def settings(name: str, words: list[str]) -> Config:
    """Return the settings of a row: its experiment, shrunk if scale=small, then the user's overrides."""
    return compose([*_row_overrides(name, words), *words])


def train_and_score(overrides: list[str]) -> None:
    """Train, or resume, and score one row; print its errors without stopping the other rows."""
    (experiment,) = (word for word in overrides if word.startswith("experiment="))
    name = experiment.removeprefix(f"experiment={ROWS_FOLDER}")
    words = [word for word in overrides if word != experiment]
    print(f"\n== {name} {TABLE_3[name].change} ==", flush=True)
    try:
        for stage in STAGES:
            _run_stage(stage, [*_row_overrides(name, words), *words])
    except UserError as error:
        print(f"nmt: {name}: {error}", file=sys.stderr, flush=True)


def _row_overrides(name: str, words: list[str]) -> list[str]:
    """Return the overrides that make a row: its experiment and, at the small scale, smaller sizes."""
    experiment = f"experiment={ROWS_FOLDER}{name}"
    if compose([experiment, *words]).table3.scale == "full":
        return [experiment]
    return [experiment, *small_scale(compose([experiment]))]


def _run_stage(stage: str, overrides: list[str]) -> None:
    """Run a command in this process, or on all GPUs of this machine if there are several."""
    gpus = torch.cuda.device_count()
    if gpus <= 1 or compose(overrides).runtime.device == "cpu":
        STAGES[stage](compose(overrides))
        return
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}", "-m", "nmt"]
    code = subprocess.run([*launcher, stage, *overrides], check=False).returncode
    if code:
        raise UserError(f"`nmt {stage}` ended with exit code {code}")


def _is_done(config: Config) -> bool:
    """Return whether a row is done with exactly these settings."""
    if not is_done(config):
        return False
    check_resumable(
        read_settings((config.run_folder / "config.yaml").read_text(encoding="utf-8")), flatten(asdict(config))
    )
    return True


def _write_table(words: list[str]) -> None:
    """Write all rows; a row that is not done has only the paper's figures."""
    configs = {name: settings(name, words) for name in TABLE_3}
    base = configs["base"]
    if not (base.data_folder / "manifest.json").exists():
        return
    vocabulary = Tokenizer.load(base.data_folder).target_size
    text = as_markdown({name: read_result(config, vocabulary) for name, config in configs.items()})
    path = Path(base.run_folder).parent / "table3.md"
    write_text(path, f"# Table 3, {base.table3.scale} scale\n\n{INTRODUCTIONS[base.table3.scale]}{text}")
    print(f"\n{text}\nwritten to {path}", flush=True)
