"""Small parallel text and trees of the embedded grammar, as files."""

from collections.abc import Iterable
from pathlib import Path

from nmt.features.demo import grammar
from nmt.features.demo.trees import sentence_tree
from nmt.parsing.trees import bracketed


def sentence_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return English sentences with their German translations."""
    drawn = grammar.draw(seed, train=count, valid=0, test=0)["train"]
    return [each.pair for each in drawn]


def trees(count: int, seed: int = 1) -> list[str]:
    """Return bracketed trees, as in the files of a treebank."""
    drawn = grammar.generate_sentences(seed, train=count, valid=0, test=0)["train"]
    return [f"( {bracketed(sentence_tree(sentence))})" for sentence in drawn]


def write_pairs(english: Path, other: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write the two sides of pairs to two files."""
    sources, targets = zip(*pairs, strict=True)
    write_lines(english, sources)
    write_lines(other, targets)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
