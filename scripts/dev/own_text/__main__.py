"""Compare what `experiment=own` derives with its fixed settings: texts of several sizes, in the same CPU time.

    .venv/bin/python scripts/dev/own_text multi30k:data/raw/multi30k tatoeba:data/raw/tatoeba --minutes 5

Each text is a folder with training, development and test text in files such as train.en, val.de or test2016.en.xz; the
cells are all of it and some pairs of it, drawn at random. A minute is a minute of CPU time of one thread: what a step
takes is timed by the clock of the process, so that other programs do not decide. With --pieces, a vocabulary has a size
of its own; the plan stays that of the recipe, so that both cells take equally many steps. What is done is not repeated,
so the same command continues after an interruption, and several commands with other --cells divide the work.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from nmt.cli import composed_settings
from nmt.compute.machine import prepare_machine
from nmt.config.keys import with_values, written
from nmt.config.schema import Config
from nmt.data.manifest import read_manifest
from nmt.data.records import Manifest
from nmt.data.training_text import open_training_text
from nmt.features.own_text.plan import Shape, Text, plan
from nmt.features.own_text.prepare import values_of
from nmt.features.own_text.settings import SHAPE
from nmt.features.own_text.speed import seconds_per_step
from nmt.runs.layout import RunLayout, scores_file
from nmt.storage.files import read_json, write_json

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, positive, run_tool, tool_parser
from shared.parallel_text import LANGUAGES, SPLITS, named_folder, read_split, write_pairs

TEXT = Path("data/own_text")
RUNS = Path("outputs/own_text")
GREEDY = ("decoding.beam=1", "decoding.extra_length=10")
"""A quick search: models that have hardly been trained do not end their sentences."""
FIXED = ("own.derive=false",)
"""The recipe before values were derived: that of conf/experiment/own.yaml."""
QUICK = ("training.valid_sentences=0", "evaluation.splits=[valid,test]", "runtime.threads=1", *GREEDY)


class Cell(NamedTuple):
    """A run of the table."""

    text: str
    folder: Path
    pairs: int
    """0 for all."""
    minutes: float
    recipe: str
    seed: int
    languages: tuple[str, ...] = LANGUAGES
    pieces: int = 0
    """Word pieces of the vocabulary; 0 for those that the recipe says."""

    @property
    def label(self) -> str:
        """The text, with its size if it is a part."""
        return f"{self.text}-{self.pairs}" if self.pairs else self.text

    @property
    def name(self) -> str:
        """The name of the run, below the folder of all of them."""
        return f"{self.label}-{self.minutes:g}-{self.recipe_name}-{self.seed}"

    @property
    def recipe_name(self) -> str:
        """The recipe, with the size of the vocabulary if it is another one."""
        return f"{self.recipe}-{self.pieces}" if self.pieces else self.recipe

    @property
    def plan_file(self) -> Path:
        """Where the values are that are planned for this cell, and for others with another vocabulary."""
        return RUNS / self._replace(pieces=0).name / "plan.json"


def settings(cell: Cell) -> list[str]:
    """Return the settings of a cell, without those that depend on the time of a step."""
    files = [f"data.{split}=[{','.join(str(_file(cell, split, side)) for side in cell.languages)}]" for split in SPLITS]
    recipe = FIXED if cell.recipe == "fixed" else (f"own.minutes={cell.minutes:g}",)
    names = [
        f"data.corpus=own_text-{cell.label}-{cell.recipe_name}",
        f"name={RUNS.name}/{cell.name}",
        f"seed={cell.seed}",
        "data.hold_out=0",
        *(f"data.{side}_lang={language}" for side, language in zip(("source", "target"), cell.languages, strict=True)),
        *([f"tokenizer.vocab_size={cell.pieces}"] if cell.pieces else []),
    ]
    return ["experiment=own", *names, *files, *recipe, *QUICK]


def planned(cell: Cell, config: Config, manifest: Manifest, step_seconds: float = 0.0) -> dict[str, object]:
    """Return the values of a run with so many minutes of CPU time, given its prepared text."""
    tokenizer = manifest.tokenizer()
    pairs = open_training_text(config.data_folder, config.data)
    vocabularies = (tokenizer.source_vocabulary, tokenizer.target_vocabulary)
    measure = partial(
        seconds_per_step,
        machine=prepare_machine(config.runtime),
        text=pairs,
        vocabularies=vocabularies,
        clock=time.process_time,
    )
    if cell.recipe == "fixed":
        return {"training.steps": max(10, int(60 * cell.minutes / (step_seconds or measure(config))))}

    def speed(shape: Shape, batch_tokens: int) -> float:
        values = {**dict(zip(SHAPE, shape, strict=True)), "training.batch_tokens": batch_tokens}
        return step_seconds or measure(with_values(config, values))

    return values_of(config, plan(Text.of(manifest.encoded("train")), cell.minutes, speed))


def train(cell: Cell) -> None:
    """Prepare, train and score a run, unless that is done."""
    words = settings(cell)
    if scores_file(RunLayout(RUNS / cell.name).evaluation, "test").exists():
        return
    _write_text(cell)
    _run("data", *words)
    if not cell.plan_file.exists():
        config = composed_settings(words)
        write_json(cell.plan_file, planned(cell, config, read_manifest(config.data_folder)))
    values = [f"{name}={written(value)}" for name, value in read_json(cell.plan_file).items()]
    for stage in ("train", "average", "eval"):
        _run(stage, *words, *values)


def table(cells: list[Cell]) -> Iterator[str]:
    """Yield the lines of the table."""
    columns = ("text", "minutes", "recipe", "seed", "steps", "width", "perplexity, dev", "BLEU, dev", "BLEU, test")
    yield f"| {' | '.join(columns)} |"
    yield f"|{len(columns) * '---|'}"
    for cell in cells:
        folder = RunLayout(RUNS / cell.name)
        if not scores_file(folder.evaluation, "test").exists():
            continue
        found = {split: json.loads(scores_file(folder.evaluation, split).read_text()) for split in ("valid", "test")}
        config = composed_settings(settings(cell)) if cell.recipe == "fixed" else None
        values = read_json(cell.plan_file)
        width = values.get("model.d_model", config and config.model.d_model)
        scores = [f"{found['valid']['perplexity']:.2f}"]
        scores += [f"{found[split]['bleu']['score']:.2f}" for split in ("valid", "test")]
        shown = [cell.label, f"{cell.minutes:g}", cell.recipe_name, cell.seed, f"{values['training.steps']:,}", width]
        yield f"| {' | '.join(map(str, [*shown, *scores]))} |"


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Return the cells that the options ask for, in their order."""
    seeds, languages = range(1, options.seeds + 1), tuple(options.languages)
    combined = product(options.texts, options.pairs, options.minutes, options.recipes, options.pieces, seeds)
    found = [
        Cell(text, folder, pairs, minutes, recipe, seed, languages, pieces)
        for (text, folder), pairs, minutes, recipe, pieces, seed in combined
    ]
    return [cell for cell in found if not options.cells or cell.name in options.cells]


def _write_text(cell: Cell) -> None:
    for split in SPLITS:
        pairs = read_split(cell.folder, split, cell.languages)
        if split == "train" and cell.pairs:
            random.Random(1).shuffle(pairs)
            pairs = pairs[: cell.pairs]
        write_pairs(pairs, partial(_file, cell, split), cell.languages)


def _file(cell: Cell, split: str, language: str) -> Path:
    return TEXT / f"{cell.label}.{split}.{language}"


def _run(stage: str, *words: str) -> None:
    print(f"== nmt {stage} {' '.join(words)}", flush=True)
    if subprocess.run([sys.executable, "-m", "nmt", stage, *words], check=False).returncode:
        sys.exit(f"nmt {stage} failed")


def main() -> None:
    """Train what is left, and print the table."""
    assert __doc__
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("texts", nargs="+", type=named_folder, metavar="NAME:FOLDER")
    parser.add_argument(
        "--pairs", type=at_least(0), nargs="+", default=[0, 10_000, 2_000], help="sizes; 0 is all (0 10000 2000)"
    )
    parser.add_argument("--languages", nargs=2, default=LANGUAGES, help="of both sides (en de)")
    parser.add_argument("--minutes", type=positive, nargs="+", default=[5.0], help="minutes of CPU time per run (5)")
    parser.add_argument("--recipes", nargs="+", choices=("fixed", "derived"), default=["fixed", "derived"])
    parser.add_argument("--pieces", type=at_least(0), nargs="+", default=[0], help="0 is what the recipe says (0)")
    parser.add_argument("--seeds", type=at_least(1), default=1, help="runs of each cell (1)")
    parser.add_argument("--cells", nargs="+", default=[], help="only these, such as multi30k-2000-5-derived-1")
    parser.add_argument("--table", action="store_true", help="train nothing, and print what is done")
    options = parser.parse_args()
    chosen = cells_of(options)
    if unknown := set(options.cells) - {cell.name for cell in chosen}:
        parser.error(f"there is no cell {min(unknown)} of these texts, sizes, minutes, recipes and seeds")
    for cell in chosen if not options.table else ():
        train(cell)
    print("\n".join(table(chosen)))


if __name__ == "__main__":
    run_tool(main, __file__)
