"""Measure what helps with little text: train a small model with each technique and several seeds, and print a table.

    .venv/bin/python scripts/dev/techniques multi30k:data/raw/multi30k tatoeba:data/raw/tatoeba

Each corpus is a folder with training, development and test text in files such as train.en, val.de or test2016.en.xz.
The models are trained on some pairs of it, chosen at random. What is done is not repeated, so the same command
continues after an interruption. Several commands at the same time, each with other --rows, divide the work.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

from nmt.features.report.seeds import GroupScores, group_scores, p_value
from nmt.runs.layout import RunLayout, hypotheses_file, scores_file
from nmt.text.lines import read_lines

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, run_tool, tool_parser
from shared.parallel_text import LANGUAGES, SPLITS, named_folder, read_split, write_pairs

TEXT = Path("data/techniques")
RUNS = Path("outputs/techniques")
SMALL = ("model.d_model=128", "model.d_ff=512", "tokenizer.vocab_size=4000", "training.warmup_steps=100")
RECIPE = (
    *("training.schedule=cosine", "training.learning_rate=4e-3", "training.muon_rate=1", "training.weight_decay=0"),
    *("training.group_by_length=true", "model.dropout=0.1"),
)
"""The recipe of `experiment=multi30k` when the table was made."""
DEEP = ("model.encoder_layers=6", "model.decoder_layers=6")
SHALLOW = ("model.encoder_layers=6", "model.decoder_layers=2")


class Technique(NamedTuple):
    """A row of the table."""

    title: str
    settings: tuple[str, ...] = ()
    """What differs from the base."""
    first: tuple[tuple[str, ...], ...] = ()
    """Commands that it needs before, each a stage of `nmt` and its settings."""
    base: str = "base"
    """The row with which it is compared."""


class Corpus:
    """A corpus, the settings of its runs, and the techniques to try on it."""

    def __init__(self, name: str, folder: Path, options: argparse.Namespace) -> None:
        self.name, self.folder, self.options = name, folder, options

    def write_text(self) -> None:
        """Write the text: pairs for training, all pairs, sentences without a translation, and the other splits."""
        for split in SPLITS:
            pairs = read_split(self.folder, split)
            if split == "train":
                self._write("all", pairs)
                random.Random(1).shuffle(pairs)
                count = self.options.pairs
                self._write("unpaired", pairs[count : 2 * count])
                pairs = pairs[:count]
            self._write(split, pairs)

    def _write(self, split: str, pairs: list[tuple[str, ...]]) -> None:
        write_pairs(pairs, partial(self._file, split))

    def _file(self, split: str, language: str) -> Path:
        return TEXT / f"{self.name}.{split}.{language}"

    def files(self, setting: str, split: str, languages: tuple[str, ...] = LANGUAGES) -> str:
        """Return the setting that names the two files of a split."""
        return f"data.{setting}=[{','.join(str(self._file(split, language)) for language in languages)}]"

    def base(self, steps: int) -> list[str]:
        """Return the settings of the base, trained for some steps."""
        splits = [self.files(split, split) for split in SPLITS]
        prepared = f"data.corpus=techniques-{self.name}"
        budget = [f"training.steps={steps}", f"training.valid_every={steps}", f"runtime.threads={self.options.threads}"]
        return ["experiment=multi30k", prepared, *splits, *SMALL, *RECIPE, *budget, "evaluation.splits=[valid,test]"]

    def techniques(self) -> Iterator[tuple[str, Technique]]:
        """Yield the rows of the table by name."""
        yield "base", Technique("base")
        noise = ("noise.bpe_dropout_source=0.1", "noise.bpe_dropout_target=0.1")
        yield "bpe_dropout", Technique("BPE-dropout", noise)
        yield "r_drop", Technique("R-Drop", ("training.r_drop=5",))
        yield "ema", Technique("average of the weights (EMA)", ("training.ema=0.99",))
        yield "attention_dropout", Technique("attention dropout", ("model.attention_dropout=0.1",))
        smaller = ("tokenizer.vocab_size=2000", f"data.corpus=techniques-{self.name}-2000")
        yield "vocabulary", Technique("smaller vocabulary", smaller)
        larger = ("tokenizer.vocab_size=8000", f"data.corpus=techniques-{self.name}-8000")
        yield "larger_vocabulary", Technique("larger vocabulary", larger)
        yield "back_translation", self._back_translation()
        yield "shallow", Technique("6 and 2 layers", SHALLOW)
        yield "distillation", self._distillation()
        if self.options.other not in ("", self.name):
            yield from self._fine_tuning(Corpus(self.options.other, self.folder, self.options))
        yield "dropout", Technique("more dropout", ("model.dropout=0.2",))

    def _back_translation(self) -> Technique:
        corpus, reverse = f"data.corpus=techniques-{self.name}-back", f"{RUNS.name}/{self.name}/reverse"
        synthetic = TEXT / f"{self.name}-back"
        turned = [self.files(split, split, LANGUAGES[::-1]) for split in SPLITS]
        languages = ("data.source_lang=de", "data.target_lang=en", f"data.corpus=techniques-{self.name}-reverse")
        model = (*self.base(self.options.steps), *turned, *languages, f"name={reverse}")
        settings = (
            corpus, f"data.mixture.synthetic.train=[{synthetic}]", "data.mixture.synthetic.tag=@bt@",
        )  # fmt: skip
        monolingual = f"input={self._file('unpaired', 'de')}"
        drawing = (f"name={reverse}", monolingual, f"synthesize.folder={synthetic}", "decoding.strategy=sample")
        return Technique("back-translation", settings, (*_trained(model), ("synthesize", *drawing)))

    def _distillation(self) -> Technique:
        teacher, synthetic = f"{RUNS.name}/{self.name}/teacher", TEXT / f"{self.name}-distilled"
        model = (*self.base(self.options.steps), *DEEP, f"name={teacher}")
        decoding = (f"name={teacher}", f"input={self._file('train', 'en')}", f"synthesize.folder={synthetic}")
        settings = (*SHALLOW, f"data.corpus=techniques-{self.name}-distilled", f"data.train=[{synthetic}]")
        first = (*_trained(model), ("synthesize", *decoding))
        return Technique("6 and 2 layers, distilled from 6 and 6", settings, first, base="shallow")

    def _fine_tuning(self, other: "Corpus") -> Iterator[tuple[str, Technique]]:
        old = f"{RUNS.name}/{other.name}/all"
        corpus, steps = f"data.corpus=techniques-{other.name}-all", 2 * self.options.steps
        first = _trained((*other.base(steps), corpus, other.files("train", "all"), f"name={old}"))
        begun = (f"training.init_from={old}", "training.learning_rate=2e-3")
        title = f"begin from a model of all of {other.name}"
        yield "fine_tuning", Technique(title, (*begun, f"data.corpus=techniques-{self.name}-tuned"), first)
        pieces = ("training.init_vocabulary=new", f"data.corpus=techniques-{self.name}-new")
        yield "fine_tuning_new", Technique("the same, with a new vocabulary", (*begun, *pieces), first)

    def train(self, name: str, technique: Technique) -> None:
        """Train and score the runs of a technique that are not done."""
        for seed in self._seeds():
            if self._is_done(name, seed):
                continue
            if seed == 1:
                for stage, *settings in technique.first:
                    _run(stage, *settings)
            settings = [*self.base(self.options.steps), *technique.settings, f"seed={seed}"]
            settings.append(f"name={RUNS.name}/{self.name}/{name}-{seed}")
            for stage in ("data", "train", "average", "eval"):
                _run(stage, *settings)

    def print_table(self) -> None:
        """Print mean, standard deviation and significance of each technique that is done."""
        print(f"\n| {self.name}: technique | settings | BLEU, development | BLEU, test | p |\n|---|---|---|---|---|")
        for name, technique in self.techniques():
            if all(self._is_done(name, seed) for seed in self._seeds()):
                found = [_mean(self._scores(name, split)) for split in ("valid", "test")]
                p = "" if name == technique.base else self._significance(name, technique.base)
                print(f"| {technique.title} | {_code(technique.settings)} | {' | '.join([*found, p])} |", flush=True)

    def _seeds(self) -> range:
        return range(1, self.options.seeds + 1)

    def _evaluation(self, name: str, seed: int) -> Path:
        return RunLayout(RUNS / self.name / f"{name}-{seed}").evaluation

    def _is_done(self, name: str, seed: int) -> bool:
        return scores_file(self._evaluation(name, seed), "test").exists()

    def _scores(self, name: str, split: str) -> GroupScores:
        """Return the BLEU of the seeds."""
        files = [hypotheses_file(self._evaluation(name, seed), split) for seed in self._seeds()]
        references = list(read_lines(self._file(split, LANGUAGES[1])))
        return group_scores(BLEU(), [list(read_lines(file)) for file in files], [references])

    def _significance(self, name: str, base: str) -> str:
        """Return how often chance makes the difference from the base on the test set at least as large."""
        p = p_value(self._scores(base, "test"), self._scores(name, "test"))
        return "" if p is None else f"{p:.3f} against {base}"


def main() -> None:
    """Train what is left, and print the tables."""
    options = _parser().parse_args()
    corpora = [Corpus(name, folder, options) for name, folder in options.corpora]
    rows = {name for corpus in corpora for name, _ in corpus.techniques()}
    if unknown := [name for name in options.rows if name not in rows]:
        sys.exit(f"there is no row {unknown[0]}: choose from {', '.join(sorted(rows))}")
    for corpus in corpora:
        corpus.write_text()
    for corpus in corpora:
        for name, technique in corpus.techniques():
            if not options.rows or name in options.rows:
                corpus.train(name, technique)
    for corpus in corpora:
        corpus.print_table()


def _trained(settings: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple((stage, *settings) for stage in ("data", "train", "average"))


def _run(stage: str, *settings: str) -> None:
    print(f"== nmt {stage} {' '.join(settings)}", flush=True)
    if subprocess.run([sys.executable, "-m", "nmt", stage, *settings], check=False).returncode:
        sys.exit(f"nmt {stage} failed")


def _mean(scores: GroupScores) -> str:
    return f"{scores.mean:.2f}" + ("" if scores.spread is None else f" ± {scores.spread:.2f}")


def _code(settings: tuple[str, ...]) -> str:
    return f"`{' '.join(settings)}`" if settings else ""


def _parser() -> argparse.ArgumentParser:
    assert __doc__
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("corpora", nargs="+", type=named_folder, metavar="NAME:FOLDER")
    parser.add_argument("--pairs", type=at_least(1), default=10_000, help="pairs of sentences to train on (10000)")
    parser.add_argument("--steps", type=at_least(1), default=800, help="steps of training (800)")
    parser.add_argument("--seeds", type=at_least(1), default=3, help="runs of each technique (3)")
    parser.add_argument("--threads", type=at_least(0), default=0, help="threads of each run (0: one per core)")
    parser.add_argument("--other", default="", help="name of the corpus from whose model another row begins")
    parser.add_argument("--rows", nargs="+", default=[], help="only these rows")
    return parser


if __name__ == "__main__":
    run_tool(main, __file__)
