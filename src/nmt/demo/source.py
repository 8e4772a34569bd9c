"""The embedded demo corpus: English and German sentences that a grammar generates, or English ones with their trees."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from nmt.config.data import DataConfig, is_text
from nmt.data.sources.source import Fingerprint, Pair, Source, languages
from nmt.errors import UserError
from nmt.parsing.linearise import tree_pair
from nmt.parsing.trees import Node
from nmt.text.alignments import GoldAlignment

SIZES = {"train": 30_000, "valid": 500, "test": 1000}
"""Pairs per split."""

SEED = 1
"""Runs of several seeds have the same text."""
VERSION = 1
"""The version of the text: raise it with each change of the grammar or its words, so that text is prepared again."""


def fingerprint(config: DataConfig, _: str) -> Fingerprint:
    """Identify the text by its version, seed and sizes."""
    return {"demo": VERSION, "seed": SEED, "sizes": SIZES, "trees": _tags_of_trees(config)}


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the generated pairs of a split."""
    source, target = languages(config)
    if source == "en" and (tags := _tags_of_trees(config)):
        return (tree_pair(tree, keep_tags=tags == "keep") for tree in _generate_trees(SEED)[split])
    if (source, target) not in (("en", "de"), ("de", "en")):
        raise UserError(f"the demo corpus is English and German, or English and trees, not {source} and {target}.")
    aligned = _aligned(config)  # the same argument as in `alignments`, so that text is generated once
    return (pair if source == "en" else pair[::-1] for pair in _generate(SEED, aligned)[split].pairs)


def _tags_of_trees(config: DataConfig) -> str | None:
    """Return how the trees of the target side show tags; None if the target side is text."""
    return None if is_text(config.target_lang) else config.pos_tags


def _aligned(config: DataConfig) -> bool:
    """Return whether the training text needs its alignments."""
    return bool(config.train_alignments)


def alignments(config: DataConfig, split: str) -> Iterator[GoldAlignment]:
    """Yield the true word alignments of a split."""
    found = _generate(SEED, _aligned(config))[split].alignments
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
    alignments=alignments,
    splits=("test", "unseen", "valid", "train"),
    can_hold_out=False,
)
