"""Make the runs: write their text, train them, and measure the BLEU of some of their checkpoints."""

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from learning_curves.runs import BASE, RUNS, PlannedRun
from nmt.cli import main as nmt
from nmt.data.store import PairStore
from nmt.evaluation.record import read_evaluation
from nmt.runs.layout import RunLayout, scores_file, step_folder_name
from nmt.runs.metrics import read_metrics
from nmt.storage.files import write_json
from shared.parallel_text import LANGUAGES, read_split, write_pairs

DEVELOPMENT_SENTENCES = 500
VALIDATIONS = 24
"""Validations of a run."""
SCORED = (2, 3, 4, 5, 6)
"""The sixths of a run after which the BLEU of its checkpoint is measured."""
TEXT, OUTPUTS = Path("data/learning_curves"), Path("outputs/learning_curves")


def make(texts: Mapping[str, Path], names: Sequence[str]) -> None:
    """Make the runs with these names, or all, and keep the curve of each."""
    if unknown := [name for name in names if name not in RUNS]:
        sys.exit(f"there is no run {unknown[0]}: choose from {', '.join(RUNS)}")
    for name in names or RUNS:
        run, curve = RUNS[name], OUTPUTS / f"{name}.json"
        if run.text not in texts:
            sys.exit(f"run {name} needs the text {run.text}: name its folder as {run.text}:FOLDER")
        if not curve.exists():
            write_json(curve, _made(name, run, texts[run.text]))


def _made(name: str, run: PlannedRun, folder: Path) -> dict[str, object]:
    """Make a run; return its curve."""
    languages = LANGUAGES[::-1] if run.reverse else LANGUAGES
    corpus = f"{run.text}-{min(run.pairs, 999_999)}-{run.words}-{languages[0]}"
    splits = {split: _write(folder, corpus, split, run.pairs) for split in ("train", "valid")}
    files = {split: f"[{','.join(str(TEXT / f'{corpus}.{split}.{each}') for each in languages)}]" for split in splits}
    settings = [
        *BASE, f"name=learning_curves/{name}", f"data.corpus=learning_curves-{corpus}",
        f"data.source_lang={languages[0]}", f"data.target_lang={languages[1]}", "evaluation.splits=[valid]",
        f"data.train={files['train']}", f"data.valid={files['valid']}", f"data.test={files['valid']}",
        f"tokenizer.vocab_size={run.words}", *run.settings,
        f"training.steps={run.steps}", f"training.valid_every={run.steps // VALIDATIONS}", "training.log_every=10",
        "training.valid_sentences=0", f"training.save_every={run.steps // 6}", f"training.keep_last={2 * VALIDATIONS}",
        "runtime.threads=1", f"seed={1 + list(RUNS).index(name)}",
    ]  # fmt: skip
    steps = [run.steps * each // 6 for each in SCORED]
    for stage in ("data", "train"):
        _nmt(stage, *settings)
    for step in steps:
        _nmt("eval", *settings, f"checkpoint={step_folder_name(step)}")
    layout = RunLayout(OUTPUTS / name)
    events = read_metrics(layout.metrics)
    scores = [read_evaluation(scores_file(layout.evaluation / step_folder_name(step), "valid")) for step in steps]
    return {
        "text": run.text, "pairs": len(splits["train"]), "words": run.words, "steps": run.steps, "reverse": run.reverse,
        "tokens": _target_tokens(Path("data") / f"learning_curves-{corpus}"),
        "characters": sum(len(pair[languages == LANGUAGES]) for pair in splits["valid"]),
        "valid": [[each.step, each.number("loss"), each.number("nll")] for each in events if each.event == "valid"],
        "train": [
            [each.step, each.number("loss"), each.number("nll"), each.number("seconds"), each.number("epoch")]
            for each in events if each.event == "train"
        ],
        "bleu": [[step, record.scores["bleu"].score] for step, record in zip(steps, scores, strict=True)],
    }  # fmt: skip


def _write(folder: Path, corpus: str, split: str, count: int) -> list[tuple[str, ...]]:
    """Write the pairs of a split; return them."""
    pairs = read_split(folder, split)
    random.Random(1).shuffle(pairs)
    pairs = pairs[: count if split == "train" else DEVELOPMENT_SENTENCES]
    files = {language: TEXT / f"{corpus}.{split}.{language}" for language in LANGUAGES}
    if not all(each.exists() for each in files.values()):
        write_pairs(pairs, files.__getitem__)
    return pairs


def _target_tokens(folder: Path) -> int:
    """Return the word pieces of the reference of the development set, with a mark at the end of each sentence."""
    store = PairStore.open(folder, "valid")
    return int(store.target_lengths.sum()) + len(store)


def _nmt(*words: str) -> None:
    if code := nmt(list(words)):
        sys.exit(code)
