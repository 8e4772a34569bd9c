"""`nmt table3`: train and score the rows of the paper's Table 3, and compare them with its figures."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch

from nmt.commands import data, evaluate, train
from nmt.config.compose import compose
from nmt.config.folders import is_address
from nmt.config.saved import flatten, read_saved, read_settings
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError
from nmt.evaluation.paper_table3 import TABLE_3
from nmt.launched import launched_processes
from nmt.runs.compatibility import check_resumable
from nmt.storage.files import write_text
from nmt.table3.effects import effects
from nmt.table3.findings import findings
from nmt.table3.scales import SCALES, scale_overrides
from nmt.table3.table import RunResult, as_markdown, choose_rows, effects_as_markdown, is_done, read_result
from nmt.text.tokenizer import Tokenizer

ROWS_FOLDER = "table3/"
"""The folder of the rows in conf/experiment/."""
STAGES = {"train": train.run, "eval": evaluate.run}
DEFAULT_SEED = Config().seed
SEED_WORDS = ("seed=", "+seed=", "++seed=")


def run(overrides: list[str]) -> None:
    """Train and score the chosen rows that are not done, and write the table."""
    if launched_processes() > 1:
        raise UserError("table3 was started by torchrun, but starts it for each row: start it alone, it uses all GPUs")
    config = compose(overrides)
    for folder in (config.paths.data, config.paths.outputs):
        if is_address(folder):
            raise ConfigError(f"`nmt table3` works in local folders only: {folder} is an address")
    for word in overrides:
        if word.lstrip("+").startswith(("experiment=", "name=")):
            raise ConfigError(f"{word}: each row has its own name; choose rows with table3.rows=[base,a1]")
    wanted = config.table3
    names, seeds = choose_rows(wanted.rows), range(config.seed, config.seed + wanted.seeds)
    words = [word for word in overrides if not word.startswith(SEED_WORDS)]
    try:
        for seed in seeds:
            _train_rows(names, seed, words)
    except BaseException:
        with suppress(Exception):  # the error of the training says more
            _write_table(seeds, words)
        raise
    _write_table(seeds, words)
    if failed := [_label(name, seed) for seed in seeds for name in names if not is_done(settings(name, seed, words))]:
        raise UserError(f"no results for {', '.join(failed)}: read the errors above")


def _train_rows(names: list[str], seed: int, words: list[str]) -> None:
    """Train and score those rows that are not done with a seed, all on the same prepared data."""
    unfinished = [name for name in names if not _is_done(settings(name, seed, words))]
    for name in names:
        if name not in unfinished:
            print(f"{_label(name, seed)}: already done", flush=True)
    if not unfinished:
        return
    data.run(settings("base", DEFAULT_SEED, words))
    for name in unfinished:
        _train_and_score(name, seed, words)


def settings(name: str, seed: int, words: list[str]) -> Config:
    """Return the settings of a row: its experiment, shrunk by the scale, then the user's overrides."""
    return compose([*_row_overrides(name, seed, words), *words])


def _train_and_score(name: str, seed: int, words: list[str]) -> None:
    """Train, or resume, and score one row; print its errors without stopping the other rows."""
    print(f"\n== {_label(name, seed)} {TABLE_3[name].change} ==", flush=True)
    try:
        for stage in STAGES:
            _run_stage(stage, [*_row_overrides(name, seed, words), *words])
    except UserError as error:
        print(f"nmt: {_label(name, seed)}: {error}", file=sys.stderr, flush=True)


def _row_overrides(name: str, seed: int, words: list[str]) -> list[str]:
    """Return the overrides that make a run of a row: its experiment, name and seed, and smaller sizes at a scale."""
    experiment = f"experiment={ROWS_FOLDER}{name}"
    row, chosen = compose([experiment]), compose([experiment, *words]).table3
    folder = "table3" if chosen.scale == "full" else f"table3-{chosen.scale}"
    if chosen.base_steps:
        folder += f"-{chosen.base_steps}"
    shrunk = scale_overrides(SCALES[chosen.scale], row, chosen.base_steps)
    return [experiment, f"name={folder}/{_label(name, seed)}", f"seed={seed}", *shrunk]


def _label(name: str, seed: int) -> str:
    """Return the name of a row in messages and of its folder, with the seed unless it is the usual one."""
    return name if seed == DEFAULT_SEED else f"{name}-seed{seed}"


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
    check_resumable(read_saved(config.run_folder / "config.yaml", read_settings), flatten(asdict(config)))
    return True


def _write_table(seeds: Sequence[int], words: list[str]) -> None:
    """Write all rows; a row that is not done has only the paper's figures."""
    base = settings("base", DEFAULT_SEED, words)
    if not (base.data_folder / "manifest.json").exists():
        return
    vocabulary = Tokenizer.load(base.data_folder).target_size
    results = {name: _results(name, seeds, words, vocabulary) for name in TABLE_3}
    perplexities = {name: [run.perplexity for run in runs] for name, runs in results.items()}
    text = "\n".join((as_markdown(results), effects_as_markdown(effects(perplexities))))
    conclusions = "\n".join(findings(perplexities))
    path, scale = Path(base.run_folder).parent / "table3.md", base.table3.scale
    introduction = SCALES[scale].introduction
    write_text(path, f"# Table 3, {scale} scale\n\n{introduction}\n\n{text}\n{conclusions}\n")
    print(f"\n{text}\n{conclusions}\nwritten to {path}", flush=True)


def _results(name: str, seeds: Sequence[int], words: list[str], vocabulary: int) -> list[RunResult]:
    """Return the results of a row; there are none if the user's overrides do not suit it."""
    try:
        configs = [settings(name, seed, words) for seed in seeds]
    except ConfigError:
        return []
    found = (read_result(config, vocabulary) for config in configs)
    return [result for result in found if result is not None]
