"""The embedded demo corpus: English and German sentences that a grammar generates, or English ones with their trees."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.data.columns import columns_of
from nmt.data.sources.source import Fingerprint, Pair, Source, languages
from nmt.data.task import task_of
from nmt.errors import UserError
from nmt.parsing.linearise import tree_pair
from nmt.parsing.trees import Node
from nmt.text.alignments import GoldAlignment

SIZES = {"train": 30_000, "valid": 500, "test": 1000}
"""Pairs per split."""


SAME_TEXT = {
    "0eca45e79f14e037024a10c8b862a0dcd6827f019eb2fc45b1d2e6c492226873":
        "00902ebfdf0255a563d01ba274bf7400ec667ba0be62dc9eda5e209790d3b01e",
    "21e203915e4160eda78279541c182f85e6172a7ef2b0b11a32c445d5c6d6b041":
        "56706a076851e01fd41e7de8a50d219584163b458b3229cc3632f057508b5845",
}  # fmt: skip
"""Checksums of the grammar's source and of that of its trees, and those that prepared text has for them: the source
was moved, and its text is the same."""


def fingerprint(config: DataConfig, _: str) -> Fingerprint:
    """Identify the text by grammar, seed and sizes."""
    from nmt.demo import grammar  # noqa: PLC0415 (only this source needs it)

    found: Fingerprint = {"demo": _checksum(grammar.fingerprint()), "seed": config.seed, "sizes": SIZES}
    if _tags_of_trees(config):
        from nmt.demo.trees import fingerprint as trees_fingerprint  # noqa: PLC0415

        return {**found, "trees": _checksum(trees_fingerprint())}
    return found


def _checksum(of_source: str) -> str:
    return SAME_TEXT.get(of_source, of_source)


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the generated pairs of a split."""
    source, target = languages(config)
    if source == "en" and (tags := _tags_of_trees(config)):
        return (tree_pair(tree, keep_tags=tags == "keep") for tree in _generate_trees(config.seed)[split])
    if (source, target) not in (("en", "de"), ("de", "en")):
        raise UserError(f"the demo corpus is English and German, or English and trees, not {source} and {target}.")
    aligned = _aligned(config)  # the same argument as in `alignments`, so that text is generated once
    return (pair if source == "en" else pair[::-1] for pair in _generate(config.seed, aligned)[split].pairs)


def _tags_of_trees(config: DataConfig) -> object:
    """Return how the trees of the target side show tags; None if the target side is text."""
    return task_of(config.target_lang).settings(config).get("pos_tags")


def _aligned(config: DataConfig) -> bool:
    """Return whether the training text needs its alignments."""
    return any(column.name in SOURCE.cells for column in columns_of(config))


def alignments(config: DataConfig, split: str) -> Iterator[GoldAlignment]:
    """Yield the true word alignments of a split."""
    found = _generate(config.seed, _aligned(config))[split].alignments
    return (each if config.source_lang == "en" else each.reversed() for each in found)


class _Generated(NamedTuple):
    """The English and German sentences of a split, and their alignments, if they are needed."""

    pairs: list[Pair]
    alignments: list[GoldAlignment]


@lru_cache(maxsize=1)
def _generate(seed: int, aligned: bool) -> dict[str, _Generated]:
    """Generate all splits. Alignments take time, so the training text has them only if `aligned` asks for them."""
    from nmt.demo import grammar  # noqa: PLC0415 (only this source needs it)

    return {
        split: _Generated(
            [each.pair for each in drawn], [each.alignment for each in drawn] if aligned or split != "train" else []
        )
        for split, drawn in grammar.draw(seed, **SIZES).items()
    }


@lru_cache(maxsize=1)
def _generate_trees(seed: int) -> dict[str, list[Node]]:
    from nmt.demo import grammar  # noqa: PLC0415 (only this source needs it)
    from nmt.demo.trees import sentence_tree  # noqa: PLC0415

    sentences = grammar.generate_sentences(seed, **SIZES)
    return {split: list(map(sentence_tree, drawn)) for split, drawn in sentences.items()}


SOURCE = Source(
    fingerprint,
    pairs,
    cells={"alignments": alignments},
    splits=("test", "unseen", "valid", "train"),
    can_hold_out=False,
)
