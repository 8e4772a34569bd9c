"""`nmt demo`: run the whole chain, from text to BLEU, on the embedded corpus."""

import random
from pathlib import Path

from nmt.commands.chain import run_chain
from nmt.config.schema import Config
from nmt.errors import has_makefile
from nmt.runs.scores import scores_folder
from nmt.text.lines import read_lines

SAMPLES = 5
"""Number of translations to show."""


def run(config: Config) -> None:
    """Run one command after the other, then show translations, times and files."""
    seconds = run_chain(config)
    _show_translations(config, config.evaluation.splits[-1])
    _show_times(seconds)
    _show_files(config)


def _show_translations(config: Config, split: str) -> None:
    """Print some translations with their references."""
    languages = (config.data.source_lang, config.data.target_lang)
    files = [*(config.data_folder / f"{split}.{each}" for each in languages), _hypotheses(config, split)]
    lines = [list(read_lines(file)) for file in files]
    print(f"\n== {SAMPLES} sentences of {split} ==")
    for source, reference, hypothesis in random.Random(config.seed).sample(list(zip(*lines, strict=True)), SAMPLES):
        verdict = "identical to the reference" if hypothesis == reference else f"reference    {reference}"
        print(f"  source       {source}\n  translation  {hypothesis}\n  {verdict}\n")


def _hypotheses(config: Config, split: str) -> Path:
    return scores_folder(config) / f"{split}.hyp.txt"


def _show_times(seconds: dict[str, float]) -> None:
    print("== time ==")
    for name, duration in {**seconds, "all": sum(seconds.values())}.items():
        print(f"  {name:<8} {duration:6.1f} s")


def _show_files(config: Config) -> None:
    print("\n== files ==")
    files: dict[str, Path] = {
        "prepared data": config.data_folder,
        "run": config.run_folder,
        "log": config.run_folder / "metrics.jsonl",
        "checkpoints": config.run_folder / "checkpoints",
        "scores": scores_folder(config),
        "report": config.run_folder / "report.html",
    }
    for name, path in files.items():
        print(f"  {name:<14} {path}")
    settings = "experiment=demo" if config.name == "demo" else f"experiment=demo name={config.name}"
    translate = f'make translate ARGS="{settings}"' if has_makefile() else f"nmt translate {settings}"
    print(f'\nTranslate a sentence:  echo "The man has given the girl a red book." | {translate}')
