"""`nmt demo`: run the whole chain, from text to BLEU, on the embedded corpus."""

import random

from nmt.commands.chain import run_chain
from nmt.config.tree import Config, PathsConfig
from nmt.errors import has_makefile
from nmt.launched import is_main_process
from nmt.runs.scores import scores_folder
from nmt.text.lines import read_lines

SAMPLES = 2
"""Number of translations to show."""


def run(config: Config) -> None:
    """Run one command after the other, then show translations and the time."""
    seconds = run_chain(config)
    if not is_main_process():
        return
    _show_translations(config, config.evaluation.splits[-1])
    settings = "experiment=demo"
    if config.name != "demo":
        settings += f" name={config.name}"
    if config.paths.outputs != PathsConfig().outputs:
        settings += f" paths.outputs={config.paths.outputs}"
    translate = f'make translate ARGS="{settings}"' if has_makefile() else f"nmt translate {settings}"
    print(f"done in {sum(seconds.values()):.0f} s, {seconds['train']:.0f} s of them training. Translate a sentence:")
    print(f'  echo "The old man gave the girl a red book yesterday." | {translate}')


def _show_translations(config: Config, split: str) -> None:
    """Print some translations with their references."""
    texts = [config.data_folder / f"{split}.{each}" for each in config.data.languages]
    files = [*texts, scores_folder(config) / f"{split}.hyp.txt"]
    lines = [list(read_lines(file)) for file in files]
    for source, reference, hypothesis in random.Random(config.seed).sample(list(zip(*lines, strict=True)), SAMPLES):
        print(f"  source       {source}\n  translation  {hypothesis}")
        if hypothesis != reference:
            print(f"  reference    {reference}")
