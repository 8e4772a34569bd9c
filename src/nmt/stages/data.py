"""`nmt data`: prepare the corpus."""

from typing import Any

from nmt.config.schema import Config
from nmt.data.prepare import prepare
from nmt.data.steps import MANIFEST


def run(config: Config) -> None:
    """Prepare the corpus and print what there is."""
    records = prepare(config)
    print()
    for line in table(records):
        print(line)
    print()
    seconds = [f"{name} {record['seconds']:.1f}" for name, record in records.items()]
    print(f"seconds: {', '.join(seconds)}")
    print(f"prepared in {config.data_folder} (figures and checksums: {MANIFEST})")


def table(records: dict[str, Any]) -> list[str]:
    """Lines that give the pairs and tokens of each split, and what the filters and the tokenizer left out."""
    lines = [f"{'split':<8}{'read':>12}{'kept':>12}{'source tokens':>16}{'target tokens':>16}  dropped"]
    for split in (name.removeprefix("encode ") for name in records if name.startswith("encode ")):
        collected, encoded = records[f"collect {split}"]["result"], records[f"encode {split}"]["result"]
        dropped = {name: count for name, count in {**collected["dropped"], **encoded["dropped"]}.items() if count}
        reasons = ", ".join(f"{name} {count:,}" for name, count in dropped.items()) or "none"
        counts = f"{collected['read']:>12,}{encoded['pairs']:>12,}"
        tokens = f"{encoded['source']['tokens']:>16,}{encoded['target']['tokens']:>16,}"
        lines.append(f"{split:<8}{counts}{tokens}  {reasons}")
    made = records["tokenizer"]["result"]
    sizes = sorted({made["source_vocabulary"], made["target_vocabulary"]})
    for seen in made["lines"]:
        skipped = f"skipped {seen['too_long']:,} over-long, {seen['reserved']:,} reserved, {seen['empty']:,} empty"
        lines.append(f"tokenizer learned from {seen['used']:,} of {seen['offered']:,} lines ({skipped})")
    lines.append(f"vocabulary: {' and '.join(f'{size:,}' for size in sizes)} word pieces")
    return lines
