"""`nmt demo`: the whole chain, from text to BLEU, on the embedded corpus."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from nmt.commands import average, data, evaluate, report, train
from nmt.config.schema import Config
from nmt.runs.scores import scores_folder
from nmt.text.lines import read_lines

SAMPLES = 5

STAGES: tuple[tuple[str, Callable[[Config], None]], ...] = (
    ("data", data.run),
    ("train", train.run),
    ("average", average.run),
    ("eval", evaluate.run),
    ("report", report.run),
)


def run(config: Config) -> None:
    """Run stage after stage, then show what came of it."""
    seconds = {}
    for name, stage in STAGES:
        print(f"\n== {name} ==", flush=True)
        started = time.monotonic()
        stage(config)
        seconds[name] = time.monotonic() - started
    for split in config.evaluation.splits[-1:]:
        _show_translations(config, split)
    _show_times(seconds)
    _show_places(config)


def _show_translations(config: Config, split: str) -> None:
    """Some translations beside their references."""
    files = [
        config.data_folder / f"{split}.{language}" for language in (config.data.source_lang, config.data.target_lang)
    ]
    lines = [list(read_lines(file)) for file in (*files, scores_folder(config) / f"{split}.hyp.txt")]
    print(f"\n== {SAMPLES} sentences of {split} ==")
    for source, reference, hypothesis in random.Random(config.seed).sample(list(zip(*lines, strict=True)), SAMPLES):
        verdict = "the same as the reference" if hypothesis == reference else f"reference    {reference}"
        print(f"  source       {source}\n  translation  {hypothesis}\n  {verdict}\n")


def _show_times(seconds: dict[str, float]) -> None:
    print("== time ==")
    for name, taken in {**seconds, "all": sum(seconds.values())}.items():
        print(f"  {name:<8} {taken:6.1f} s")


def _show_places(config: Config) -> None:
    print("\n== where everything lies ==")
    places: dict[str, Path] = {
        "prepared data": config.data_folder,
        "run": config.run_folder,
        "log": config.run_folder / "metrics.jsonl",
        "checkpoints": config.run_folder / "checkpoints",
        "scores": scores_folder(config),
        "report": config.run_folder / "report.html",
    }
    for name, path in places.items():
        print(f"  {name:<14} {path}")
    print(
        '\nTranslate a sentence:  echo "The old man gives the girl a red book." | make translate ARGS="experiment=demo"'
    )
