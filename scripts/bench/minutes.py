"""Train Hugging Face's Marian for some minutes, and score its translations of the test set.

nmt itself does that by its commands: `training.max_training_minutes=10`, or `experiment=own own.minutes=10`.
"""

import argparse

from corpus import open_corpus, shape_overrides
from engines import ENGINES, Bench, print_table, required
from sacrebleu.metrics.bleu import BLEU

RECIPE = ("training.schedule=cosine", "training.warmup_steps=400", "training.steps=100000")
"""The schedule follows the time, as nmt's does, so that it uses all of its minutes."""
HEAD = ("engine", "precision", "updates", "minutes", "sacreBLEU")


def measure(options: argparse.Namespace, bench: Bench) -> None:
    """Train, translate and print the score."""
    shape = shape_overrides(options.shape, options.batch_tokens)
    recipe = [*RECIPE, f"training.learning_rate={options.rate}", f"training.max_training_minutes={options.minutes}"]
    corpus = open_corpus([*options.overrides, *shape, *recipe], bench.threads)
    test = corpus.store("test")
    sources = [test.source(index).tolist() for index in range(len(test))]
    references = corpus.lines("test", corpus.config.data.target_lang)
    job = corpus.job("minutes", options.precision, minutes=options.minutes, sources=sources, beam=options.beam)
    found = required(bench.run("huggingface", job))
    score = BLEU().corpus_score([corpus.tokenizer.decode(ids) for ids in found["hypotheses"]], [references]).score
    figures = (f"{found['updates']:,}", f"{found['seconds'] / 60:.1f}", f"{score:.2f}")
    print(f"\n{options.minutes:g} minutes of training, beam {options.beam}\n{bench.machine}\n")
    print_table(HEAD, [(ENGINES["huggingface"].title, options.precision, *figures)])
