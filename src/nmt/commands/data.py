"""`nmt data`: prepare the corpus."""

import sys
from typing import Any

from nmt.config.schema import Config, DataConfig
from nmt.data.filter_counts import filter_counts
from nmt.data.manifest import MANIFEST
from nmt.data.prepare import prepare
from nmt.errors import UserError


def run(config: Config) -> None:
    """Prepare the corpus and print what there is."""
    if config.data.source == "files":
        _check_order(config.data)
    records = prepare(config)
    print()
    for line in table(records):
        print(line)
    print()
    seconds = [f"{name} {record['seconds']:.1f}" for name, record in records.items()]
    print(f"seconds: {', '.join(seconds)}")
    print(f"prepared in {config.data_folder} (figures and checksums: {MANIFEST})")
    for line in overlap_warnings(records):
        print(f"warning: {line}", file=sys.stderr, flush=True)


def _check_order(data: DataConfig) -> None:
    """Refuse two files where the name of one says that it is in the other one's language."""
    for split in ("train", "valid", "test"):
        files = getattr(data, split)
        endings = [file.removesuffix(".gz").removesuffix(".xz").rpartition(".")[2].lower() for file in files]
        if len(files) == 2 and (endings[0] == data.target_lang.lower() or endings[1] == data.source_lang.lower()):
            raise UserError(
                f"data.{split}: {files[0]} would be read as data.source_lang={data.source_lang} and {files[1]} as "
                f"data.target_lang={data.target_lang}: put the source side first, or set the languages"
            )


def table(records: dict[str, Any]) -> list[str]:
    """Lines that give the pairs and tokens of each split, what each filter left out, and what the tokenizer saw."""
    lines = [f"{'split':<8}{'read':>12}{'kept':>12}{'source tokens':>16}{'target tokens':>16}"]
    for split in (name.removeprefix("encode ") for name in records if name.startswith("encode ")):
        read, encoded = records[f"collect {split}"]["result"]["read"], records[f"encode {split}"]["result"]
        tokens = f"{encoded['source']['tokens']:>16,}{encoded['target']['tokens']:>16,}"
        lines.append(f"{split:<8}{read:>12,}{encoded['pairs']:>12,}{tokens}")
    lines += [*_left_out(records), *_joined(records)]
    lines += ["", *_filter_table(records), ""]
    made = records["tokenizer"]["result"]
    sizes = sorted({made["source_vocabulary"], made["target_vocabulary"]})
    for seen in made["lines"]:
        skipped = f"skipped {seen['too_long']:,} over-long, {seen['reserved']:,} reserved, {seen['empty']:,} empty"
        lines.append(f"tokenizer learned from {seen['used']:,} of {seen['offered']:,} lines ({skipped})")
    lines.append(f"vocabulary: {' and '.join(f'{size:,}' for size in sizes)} word pieces")
    return lines


def overlap_warnings(records: dict[str, Any]) -> list[str]:
    """Return a line for each split of which sentences also stand in the training text."""
    lines = []
    for split, counts in records["overlap"]["result"].items():
        found = {kind: counts[kind] for kind in ("source", "target", "pair")}
        if any(found.values()):
            total = counts["sentences"]
            source, target, pair = (f"{count:,} ({count / total:.1%})" for count in found.values())
            lines.append(
                f"of {total:,} {split} sentences, {source} also stand in the training text on the source side, "
                f"{target} on the target side, and {pair} as the same pair: its scores may be too good"
            )
    return lines


def _left_out(records: dict[str, Any]) -> list[str]:
    """Return lines that say what development and test text lost: pairs that cannot be scored."""
    lines = []
    for split in (name.removeprefix("collect ") for name in records if name.startswith("collect ")):
        dropped = {name: count for name, count in records[f"collect {split}"]["result"]["dropped"].items() if count}
        if split != "train" and dropped:
            reasons = ", ".join(f"{count:,} {name}" for name, count in dropped.items())
            lines.append(f"left out of {split}: {sum(dropped.values()):,} pairs that cannot be scored ({reasons})")
    return lines


def _joined(records: dict[str, Any]) -> list[str]:
    """Return lines that say how many sentences of each split held line breaks."""
    counts = {
        name.removeprefix("collect "): record["result"].get("line_breaks", 0)
        for name, record in records.items()
        if name.startswith("collect ")
    }
    return [
        f"{count:,} sentences of {split} held line breaks, which became spaces"
        for split, count in counts.items()
        if count
    ]


def _filter_table(records: dict[str, Any]) -> list[str]:
    """Lines that give, in the order of the filters of the training text, what each dropped and what it left."""
    first, *filters = filter_counts(records)
    read, left = first.left, [first, *filters][-1].left
    lines = [f"{'filter of train':<36}{'dropped':>12}{'share':>9}{'left':>13}"]
    for each in filters:
        label = f"{each.name} ({each.limit})" if each.limit else each.name
        lines.append(f"{label:<36}{each.dropped:>12,}{each.dropped / read:>9.2%}{each.left:>13,}")
    lines.append(f"{'all':<36}{read - left:>12,}{(read - left) / read:>9.2%}{left:>13,}")
    return lines
