"""`nmt data`: prepare a corpus."""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from nmt.config.schema import Config, DataConfig
from nmt.config.schema.corpora import corpora_of
from nmt.data.corpora import is_training_text, naming_corpus
from nmt.data.earlier_tokenizer import earlier_tokenizer
from nmt.data.filter_counts import filter_counts
from nmt.data.layout import CorpusLayout
from nmt.data.prepare import prepare
from nmt.data.records import Manifest
from nmt.data.sources.file_languages import has_one_side, named_languages
from nmt.data.sources.formats import uncompressed_name
from nmt.data.sources.source import languages
from nmt.data.text_task import text_tasks
from nmt.errors import UserError
from nmt.text.language import base_code


def run(config: Config) -> None:
    """Prepare the corpus and print its figures."""
    for corpus, prefix in corpora_of(config.data).values():
        if corpus.source == "files":
            with naming_corpus(prefix):
                _check_order(corpus)
    manifest = prepare(config)
    print()
    for line in table(manifest, config):
        print(line)
    print()
    seconds = [f"{name} {record.seconds:.1f}" for name, record in manifest.tasks.items()]
    print(f"seconds: {', '.join(seconds)}")
    print(f"prepared in {config.data_folder} (figures and checksums: {CorpusLayout(config.data_folder).manifest.name})")
    found = (each.warnings(config, manifest) for each in text_tasks())
    for line in chain(_language_warnings(config), *found):
        print(f"warning: {line}", file=sys.stderr, flush=True)


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


def _language_warnings(config: Config) -> Iterator[str]:
    """Yield a warning for each corpus whose files are named after other languages than those of the settings."""
    for data, prefix in corpora_of(config.data).values():
        named, meant = named_languages(data), languages(data)
        if named and any(map(_differ, named, meant)):
            yield (
                f"files of {prefix}train, valid or test are named after {named[0]} and {named[1]}, but scores, reports "
                f"and servers go by {prefix}source_lang={meant[0]} and {prefix}target_lang={meant[1]}: "
                f"if that is wrong, give {prefix}source_lang={named[0]} {prefix}target_lang={named[1]}"
            )


def _differ(named: str, meant: str) -> bool:
    """Return whether two codes are different languages; a code of two letters may be one of three (fr and fra)."""
    first, second = base_code(named), base_code(meant)
    return first != second and len(first) == len(second)


def table(manifest: Manifest, config: Config) -> list[str]:
    """Return lines with the pairs and tokens of each split, the pairs that filters dropped, and the tokenizer."""
    width = max(8, *(len(split) + 2 for split in manifest.splits("encode")))
    lines = [f"{'split':<{width}}{'read':>12}{'kept':>12}{'source tokens':>16}{'target tokens':>16}"]
    for split in manifest.splits("encode"):
        read, encoded = manifest.collected(split).read, manifest.encoded(split)
        tokens = f"{encoded.source.tokens:>16,}{encoded.target.tokens:>16,}"
        lines.append(f"{split:<{width}}{read:>12,}{encoded.pairs:>12,}{tokens}")
    lines += [*_left_out(manifest), *_joined(manifest)]
    for split in manifest.splits("encode"):
        if is_training_text(split):
            lines += ["", *_filter_table(manifest, split)]
    lines.append("")
    trained = manifest.tokenizer()
    sizes = sorted({trained.source_vocabulary, trained.target_vocabulary})
    for seen in trained.lines:
        skipped = f"skipped {seen.too_long:,} over-long, {seen.reserved:,} reserved, {seen.empty:,} empty"
        lines.append(f"tokenizer learned from {seen.used:,} of {seen.offered:,} lines ({skipped})")
    if not trained.lines and (earlier := earlier_tokenizer(config)):
        asked = config.tokenizer.vocab_size
        lines.append(
            f"tokenizer kept from {earlier.kept_from}"
            + ("" if asked in sizes else f", with its own pieces, not tokenizer.vocab_size={asked}")
        )
    lines.append(f"vocabulary: {' and '.join(f'{size:,}' for size in sizes)} word pieces")
    return lines


def _left_out(manifest: Manifest) -> list[str]:
    """Return a line for each development or test split that lost pairs because they cannot be scored."""
    lines = []
    for split in manifest.splits("collect"):
        dropped = {name: count for name, count in manifest.collected(split).dropped.items() if count}
        if not is_training_text(split) and dropped:
            reasons = ", ".join(f"{count:,} {name}" for name, count in dropped.items())
            lines.append(f"left out of {split}: {sum(dropped.values()):,} pairs that cannot be scored ({reasons})")
    return lines


def _joined(manifest: Manifest) -> list[str]:
    """Return a line for each split whose sentences held line breaks."""
    counts = {split: manifest.collected(split).line_breaks for split in manifest.splits("collect")}
    return [
        f"{count:,} sentences of {split} held line breaks, which became spaces"
        for split, count in counts.items()
        if count
    ]


def _filter_table(manifest: Manifest, split: str) -> list[str]:
    """Return lines with the pairs of a corpus's training text that each filter dropped and left, in order."""
    first, *filters = filter_counts(manifest, split)
    read, left = first.left, [first, *filters][-1].left
    labels = [f"{each.name} ({each.limit})" if each.limit else each.name for each in filters]
    width = max(36, *map(len, labels))
    lines = [f"{f'filter of {split}':<{width}}{'dropped':>12}{'share':>9}{'left':>13}"]
    for label, each in zip(labels, filters, strict=True):
        lines.append(f"{label:<{width}}{each.dropped:>12,}{each.dropped / read:>9.2%}{each.left:>13,}")
    lines.append(f"{'all':<{width}}{read - left:>12,}{(read - left) / read:>9.2%}{left:>13,}")
    return lines
