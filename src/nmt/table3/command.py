"""`nmt table3`: train and score the rows of the paper's Table 3, and print them next to its figures."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

import torch

from nmt.commands import data, evaluate, train
from nmt.config.compose import compose
from nmt.config.folders import is_address
from nmt.config.saved import check_resumable, flatten, load_config
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError, nearest
from nmt.evaluation.paper import TABLE_3
from nmt.launched import launched_processes
from nmt.storage.files import write_text
from nmt.table3.table import read_result, read_scores, table
from nmt.text.tokenizer import Tokenizer

STAGES = {"train": train.run, "eval": evaluate.run}
FIRST_SEED = Config().seed
SCALES = {
    "full": "The columns `paper` hold the paper's figures.",
    "multi30k": "The rows are shrunk in proportion and trained on Multi30k, each for the same number of steps (big for "
    "three times as many, as in the paper). The columns `paper` hold the figures of the full size.",
    "small": "The rows are shrunk and trained on the demo corpus, to show that they run. The columns `paper` hold the "
    "figures of the full size: compare only the differences between rows.",
}
"""What the written table says about its rows, by the value of table3.scale."""


def run(words: list[str]) -> None:
    """Train and score the chosen rows that are not done, and write the table."""
    if launched_processes() > 1:
        raise UserError("table3 starts torchrun for each row: start it alone, it uses all GPUs")
    config = compose(words)
    if address := next(filter(is_address, (config.paths.data, config.paths.outputs)), ""):
        raise ConfigError(f"`nmt table3` works in local folders only: {address} is an address")
    if named := [word for word in words if word.lstrip("+").startswith(("experiment=", "name="))]:
        raise ConfigError(f"{named[0]}: each row has its own name; choose rows with table3.rows=[base,a1]")
    rows, seeds = choose_rows(config.table3.rows), range(config.seed, config.seed + config.table3.seeds)
    words = [word for word in words if not word.lstrip("+").startswith("seed=")]
    data.run(settings("base", FIRST_SEED, words))
    try:
        missing = [_label(row, seed) for seed in seeds for row in rows if not _train_and_score(row, seed, words)]
    finally:
        _write_table(seeds, words)
    if missing:
        raise UserError(f"no results for {', '.join(missing)}: read the errors above")


def choose_rows(names: Sequence[str]) -> list[str]:
    """Return the rows with these names, or all of them, in the paper's order."""
    for name in names:
        if name not in TABLE_3:
            raise ConfigError(f"table3.rows: the paper's Table 3 has no row {name}; {nearest(name, TABLE_3)}")
    return [name for name in TABLE_3 if not names or name in names]


def settings(row: str, seed: int, words: list[str]) -> Config:
    """Return the settings of a row: its experiment, shrunk to the scale, then the user's overrides."""
    return compose(_overrides(row, seed, words))


def _overrides(row: str, seed: int, words: list[str]) -> list[str]:
    experiment = f"experiment=table3/{row}"
    scale = compose([experiment, *words]).table3.scale
    name = f"table3{'' if scale == 'full' else f'-{scale}'}/{_label(row, seed)}"
    shrunk = [] if scale == "full" else _shrunk(compose([experiment]), small=scale == "small")
    return [experiment, f"name={name}", f"seed={seed}", *shrunk, *words]


def _shrunk(row: Config, *, small: bool) -> list[str]:
    """Return the overrides that shrink a row, so that it still differs from base as in the paper."""
    narrower, steps = (8, 312) if small else (4, 1200)
    row_steps = row.training.steps * steps // Config().training.steps  # big takes three times as many
    corpus = ["data=demo", "tokenizer.vocab_size=1200", "training.batch_tokens=1024", "training.warmup_steps=96"]
    if not small:
        corpus = [
            "data=multi30k",
            "tokenizer.vocab_size=8000",
            "model.norm_placement=pre",
            "model.initialization=small",
            "training.optimizer=muon",  # learns as much in a quarter of the steps
            "training.schedule=cosine",
            "training.batch_tokens=512",
            "training.warmup_steps=150",
        ]
    return [
        *corpus,
        f"model.layers={row.model.layers // 2}",
        *(f"model.{name}={getattr(row.model, name) // narrower}" for name in ("d_model", "d_ff", "d_k", "d_v")),
        "training.learning_rate=3e-3",  # the paper's formula gives too high a rate for so narrow a model
        f"training.steps={row_steps}",
        f"training.valid_every={row_steps}",
        "training.valid_sentences=0",
        f"training.save_every={steps // 2}",
        "training.log_every=20",
        "decoding.extra_length=10",  # after few steps a model may not have learned to end a sentence
    ]


def _train_and_score(row: str, seed: int, words: list[str]) -> bool:
    """Train, or resume, and score a row unless it is done; print its errors, and return whether it is done."""
    own = _overrides(row, seed, words)
    config = compose(own)
    if read_scores(config):
        check_resumable(flatten(asdict(load_config(config.run_folder / "config.yaml"))), flatten(asdict(config)))
        print(f"{_label(row, seed)}: already done", flush=True)
        return True
    print(f"\n== {_label(row, seed)} {TABLE_3[row].change} ==", flush=True)
    gpus = 0 if config.runtime.device == "cpu" else torch.cuda.device_count()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}", "-m", "nmt"]
    try:
        for stage, run_here in STAGES.items():
            if gpus <= 1:
                run_here(config)
            elif code := subprocess.run([*torchrun, stage, *own], check=False).returncode:
                raise UserError(f"`nmt {stage}` ended with exit code {code}")
    except UserError as error:
        print(f"nmt: {_label(row, seed)}: {error}", file=sys.stderr, flush=True)
    return read_scores(config) is not None


def _label(row: str, seed: int) -> str:
    """Return the name of a row in messages and of its folder, with the seed unless it is the usual one."""
    return row if seed == FIRST_SEED else f"{row}-seed{seed}"


def _write_table(seeds: Sequence[int], words: list[str]) -> None:
    """Write all rows; a row that is not done has only the paper's figures."""
    base = settings("base", FIRST_SEED, words)
    vocabulary, found = Tokenizer.load(base.data_folder).target_size, {}
    for row in TABLE_3:
        try:
            runs = [read_result(settings(row, seed, words), vocabulary) for seed in seeds]
        except ConfigError:  # the user's overrides do not suit this row, which was not asked for
            runs = []
        found[row] = [each for each in runs if each is not None]
    text, path, scale = table(found), base.run_folder.parent / "table3.md", base.table3.scale
    write_text(path, f"# Table 3, {scale} scale\n\n{SCALES[scale]}\n\n{text}")
    print(f"\n{text}\nwritten to {path}", flush=True)
