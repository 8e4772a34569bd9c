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
from nmt.report.table3 import chosen, is_done, measured, small, table
from nmt.runs.compatibility import check_resumable
from nmt.storage.files import write_text
from nmt.text.tokenizer import Tokenizer

FOLDER = "table3/"
"""The folder of the rows in conf/experiment/."""
STAGES = {"train": train.run, "eval": evaluate.run}

ABOUT = {
    "full": "The paper's figures are in the columns `paper`.\n\n",
    "small": "Rows shrunk and trained on the demo corpus, to show them run. The columns `paper` are of the full size, "
    "so only the way they differ can be compared.\n\n",
}


def run(overrides: list[str]) -> None:
    """Train and score the chosen rows that are not done yet, then write the table."""
    words, launching = split(overrides)
    config = compose(words)
    for word in words:
        if word.lstrip("+").startswith(("experiment=", "name=")):
            raise ConfigError(f"{word}: the rows have names of their own; choose among them with table3.rows=[base,a1]")
    names = chosen(config.table3.rows)
    open_names = [name for name in names if not _is_done(settings(name, words))]
    for name in names:
        if name not in open_names:
            print(f"{name}: done before", flush=True)
    try:
        if open_names:
            data.run(settings(open_names[0], words))
            experiments = ",".join(FOLDER + name for name in open_names)
            multirun(train_and_score, [f"experiment={experiments}", *words, *launching], config.paths.outputs)
    finally:
        _write_table(words)
    if failed := [name for name in open_names if not is_done(settings(name, words))]:
        raise UserError(f"no figures of {', '.join(failed)}: what was wrong is said above, or in the launcher's logs")


def settings(name: str, words: list[str]) -> Config:
    """Return the settings of a row: its experiment, shrunk if scale=small, then the user's overrides."""
    return compose([*_first(name, words), *words])


def train_and_score(overrides: list[str]) -> None:
    """Train and score one row, resuming if it was begun; print its errors without stopping the other rows."""
    (experiment,) = (word for word in overrides if word.startswith("experiment="))
    name = experiment.removeprefix(f"experiment={FOLDER}")
    words = [word for word in overrides if word != experiment]
    print(f"\n== {name} {TABLE_3[name].change} ==", flush=True)
    try:
        for stage in STAGES:
            _run_stage(stage, [*_first(name, words), *words])
    except UserError as error:
        print(f"nmt: {name}: {error}", file=sys.stderr, flush=True)


def _first(name: str, words: list[str]) -> list[str]:
    experiment = f"experiment={FOLDER}{name}"
    if compose([experiment, *words]).table3.scale == "full":
        return [experiment]
    return [experiment, *small(compose([experiment]))]


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
    """Write all rows; those that are not done yet have only the paper's figures."""
    configs = {name: settings(name, words) for name in TABLE_3}
    base = configs["base"]
    if not (base.data_folder / "manifest.json").exists():
        return
    vocabulary = Tokenizer.load(base.data_folder).target_size
    text = table({name: measured(config, vocabulary) for name, config in configs.items()})
    path = Path(base.run_folder).parent / "table3.md"
    write_text(path, f"# Table 3, {base.table3.scale} scale\n\n{ABOUT[base.table3.scale]}{text}")
    print(f"\n{text}\nwritten to {path}", flush=True)
