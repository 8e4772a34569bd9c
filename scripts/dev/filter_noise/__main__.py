"""Show what each filter of the training text catches of eight kinds of noise, and what it drops of clean pairs.

    .venv/bin/python scripts/dev/filter_noise --pairs 1000000

The clean pairs and those of the test set are those of the demo's grammar, or distinct ones of two files in English and
German. Each filter judges all pairs alone; the last row is all of them together.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from nmt.config.compose import compose
from nmt.config.schema import Config
from nmt.data.engine import LocalProcesses
from nmt.data.filters import FilterChain, HeldOutPair, chunks, training_filters
from nmt.data.sources.source import Pair, languages
from nmt.errors import UserError
from nmt.features.demo import grammar
from nmt.text.lines import read_lines

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package
from filter_noise.noise import CLEAN, KINDS, Sides, with_noise
from shared.command_line import at_least, run_tool, tool_parser

SHARE = 0.3
"""The share of bad pairs."""
TEST_PAIRS = 2000
ALL = "all together"
LANGUAGE = {"language": "data.min_language_probability=0.1"} if find_spec("py3langid") else {}
FILTERS = {
    "copies": "data.drop_copies=true",
    "ratio": "data.max_ratio=2",
    "characters": "data.max_character_ratio=2",
    "numbers": "data.match_numbers=true",
    "letters": "data.min_letters=0.6",
    "links": "data.drop_links=true",
    "boilerplate": "data.drop_boilerplate=true",
    "near duplicates": "data.near_duplicates=0.7",
    "duplicates": "data.deduplicate=true",
    "overlap": "data.drop_overlap=side",
    "overlap of runs": "data.overlap_share=0.5",
    **LANGUAGE,
}
"""The setting of each filter, by the filter's name."""


def clean_pairs(count: int, files: Sequence[str], seed: int) -> tuple[list[Sides], list[Sides]]:
    """Return distinct good pairs, and others as a test set."""
    if not files:
        drawn = grammar.generate(seed, train=count, valid=1, test=TEST_PAIRS)
        return drawn["train"], drawn["test"]
    sides = (read_lines(Path(file)) for file in files)
    distinct = dict.fromkeys((source, target) for source, target in zip(*sides, strict=True) if source and target)
    found = list(islice(distinct, count + TEST_PAIRS))
    if len(found) < count + TEST_PAIRS:
        raise UserError(f"{' and '.join(files)} have {len(found):,} distinct pairs: lower --pairs")
    return found[TEST_PAIRS:], found[:TEST_PAIRS]


def dropped_of(pairs: Sequence[Pair], test: Sequence[Sides], name: str, config: Config) -> Counter[str]:
    """Return how many pairs of each kind the filter of this name drops, or all of them together."""
    held_out = [HeldOutPair(languages(config.data), *pair) for pair in test]
    chosen = [each for each in training_filters(config.data) if name in (each.name, ALL)]
    filters = [each.knowing(config.data, lambda: held_out) for each in chosen]
    kept: Counter[str] = Counter()
    with closing(FilterChain(filters, config.data, LocalProcesses(config))) as chain:
        for chunk in chain.apply_all(chunks(iter(pairs))):
            kept.update(pair[2] for pair in chunk)
    return Counter(pair[2] for pair in pairs) - kept


def table(pairs: Sequence[Pair], test: Sequence[Sides]) -> Iterator[str]:
    """Yield the lines of the table as Markdown."""
    counts = Counter(pair[2] for pair in pairs)
    names = [*(kind.name for kind in KINDS), CLEAN]
    yield f"| filter | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for name, settings in {**{name: [setting] for name, setting in FILTERS.items()}, ALL: [*FILTERS.values()]}.items():
        config = compose(settings)
        dropped = dropped_of(pairs, test, name, config)
        cells = (f"{dropped[kind] / max(counts[kind], 1):.1%}" for kind in names)
        label = ALL if name == ALL else f"`{settings[0]}`"
        yield f"| {label} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--pairs", type=at_least(1), default=1_000_000, help="good and bad pairs together")
    parser.add_argument("--files", nargs=2, default=[], help="files of good pairs, English and German")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    clean, test = clean_pairs(round(given.pairs * (1 - SHARE)), given.files, given.seed)
    pairs = list(with_noise(clean, test, SHARE, given.seed))
    print(f"{len(pairs):,} pairs, {len(pairs) - len(clean):,} of them bad\n")
    for line in table(pairs, test):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    run_tool(main, __file__)
