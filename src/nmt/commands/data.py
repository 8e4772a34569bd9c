"""`nmt data`: prepare a corpus."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from nmt.config.data import SIDE, DataConfig, corpora_of, is_text
from nmt.config.keys import written
from nmt.config.saved import differences, flatten, is_adjustable, load_settings
from nmt.config.tree import Config
from nmt.data.corpora import naming_corpus
from nmt.data.filters.pipeline import filter_counts
from nmt.data.make_tokenizer import earlier_tokenizer, is_trained
from nmt.data.manifest import Manifest, collect_task, read_manifest
from nmt.data.prepare import prepare
from nmt.data.sources import registry
from nmt.data.sources.files import has_one_side, uncompressed_name
from nmt.errors import CommonError, UserError
from nmt.launched import is_main_process
from nmt.runs.layout import SETTINGS, RunLayout

MIN_OVERLAP = 0.01
"""The share of sentences in the training text from which there is a warning: fewer hardly change the scores."""


def run(config: Config) -> None:
    """Prepare the corpus and print its figures."""
    for corpus, prefix in corpora_of(config.data).values():
        if corpus.source == "files":
            with naming_corpus(prefix):
                _check_order(corpus)
    _check_run(config)
    manifest = prepare(config, lambda line: None if ": done in" in line else print(line, flush=True))
    if not is_main_process():
        return
    print(*summary(manifest, config), sep="\n")
    for line in warnings(config, manifest):
        print(f"warning: {line}", file=sys.stderr, flush=True)


def _check_run(config: Config) -> None:
    """Refuse to prepare other text, or text in another way, for a run that has begun with this corpus."""
    newest = RunLayout(config.run_folder).newest_checkpoint()
    if newest is None:
        return
    try:
        saved = load_settings(newest / SETTINGS)
    except (UserError, OSError):  # training reports it
        return
    found = differences(saved, flatten(asdict(config)))
    changed = [key for key in found if key.startswith(("data.", "tokenizer.")) and not is_adjustable(key)]
    if {"data.corpus", "paths.data"} & found.keys():
        return
    began = "; ".join(f"{key}={written(found[key][0])}, not {written(found[key][1])}" for key in changed)
    collected = read_manifest(config.data_folder).tasks.get(collect_task("train"))
    text = registry.fingerprint_if_here(config.data, "train") if collected else None
    if not began and collected and text not in (None, collected.inputs.get("source")):
        began = f"another text in data.train={written(config.data.train)}"
    if began:
        raise CommonError(
            f"run {config.name} began with {began}: give other text and other settings of text a run and "
            f"a corpus of their own, with name= and data.corpus=, or delete {config.run_folder}"
        )


def _check_order(data: DataConfig) -> None:
    """Refuse two files if the ending of one names the language of the other."""
    for split in ("train", "valid", "test"):
        files = getattr(data, split)
        if len(files) != 2 or not all(map(has_one_side, files)):
            continue
        endings = [uncompressed_name(Path(file)).suffix.removeprefix(".").lower() for file in files]
        if endings[0] == data.target_lang.lower() or endings[1] == data.source_lang.lower():
            raise UserError(
                f"data.{split}: {files[0]} would be read as data.source_lang={data.source_lang} and {files[1]} as "
                f"data.target_lang={data.target_lang}: put the source side first, or set the languages"
            )


def warnings(config: Config, manifest: Manifest) -> Iterator[str]:
    """Yield a line for each split whose scores say more than they should."""
    prefixes = [prefix for data, prefix in corpora_of(config.data).values() if data.drop_overlap != SIDE]
    hint = f" ({prefixes[0]}drop_overlap={SIDE} drops such pairs)" if prefixes else ""
    for name, overlap in manifest.overlap().items():
        repeated = max(overlap.source, overlap.target if is_text(config.data.target_lang) else 0)  # trees often repeat
        if repeated > MIN_OVERLAP * overlap.sentences:
            found = (overlap.source, overlap.target, overlap.pair)
            source, target, pair = (f"{count:,} ({count / overlap.sentences:.1%})" for count in found)
            yield (
                f"of {overlap.sentences:,} {name} pairs, the source of {source} and the target of {target} are also in "
                f"the training text, and {pair} as the same pair: the scores may be too good{hint}"
            )


def summary(manifest: Manifest, config: Config) -> list[str]:
    """Return lines with the pairs of each split, the pairs that filters dropped, and the size of the vocabulary."""
    trained, splits = manifest.tokenizer(), manifest.splits("encode")
    sizes = sorted({trained.source_vocabulary, trained.target_vocabulary})
    pairs = ", ".join(f"{split} {manifest.encoded(split).pairs:,}" for split in splits)
    vocabulary = " and ".join(f"{size:,}" for size in sizes)
    seconds = sum(record.seconds for record in manifest.tasks.values())
    lines = [f"data: {pairs} pairs in {config.data_folder}; {vocabulary} word pieces; {seconds:.0f} s"]
    for split in splits:
        read, *filters = filter_counts(manifest, split)
        dropped = sum(each.dropped for each in filters)
        each_filter = (f"{each.dropped:,} {each.name} ({each.limit})" for each in filters if each.dropped)
        if dropped:
            reasons = ", ".join(each_filter).replace(" ()", "")
            lines.append(f"filters dropped {dropped:,} of {read.left:,} pairs of {split}: {reasons}")
    if not is_trained(config):
        lines.append(f"tokenizer kept from {earlier_tokenizer(config)}")
    return lines
