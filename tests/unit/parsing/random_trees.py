"""Trees for tests, from text or random."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from nmt.parsing.trees import Leaf, Node, Part, leaves, parse_trees

LABELS = ("S", "NP", "VP", "PP", "ADVP", "PRT", "SBAR", "NP-SBJ", "ADVP-TMP-1", "PP=2", "S-TPC-1", "TOP")
TAGS = ("NN", "VB", "DT", ",", ".", ":", "``", "''", "-NONE-", "-LRB-", "RP")
MAX_DEPTH = 8
MAX_CHILDREN = 4


def tree(text: str) -> Node:
    """Return the tree of a bracketed text."""
    ((_, found),) = parse_trees([text], "a tree")
    return found


def words(tree: Node) -> list[str]:
    """Return the words of a tree."""
    return [leaf.word for leaf in leaves(tree)]


def random_leaves(random: Random, tags: Sequence[str] = TAGS) -> list[Leaf]:
    """Return up to 14 words with random tags."""
    return [Leaf(random.choice(tags), f"word{index}") for index in range(random.randint(1, 14))]


def random_tree(random: Random, leaves: Sequence[Leaf], labels: Sequence[str] = LABELS) -> Node:
    """Return a random tree over these leaves."""
    return Node("S", (_random_part(random, leaves, labels, 0),))


def _random_part(random: Random, leaves: Sequence[Leaf], labels: Sequence[str], depth: int) -> Part:
    if len(leaves) == 1 and (depth >= MAX_DEPTH or random.random() < 0.6):
        return leaves[0]
    count = random.randint(1, min(MAX_CHILDREN, len(leaves))) if depth < MAX_DEPTH else len(leaves)
    cuts = [0, *sorted(random.sample(range(1, len(leaves)), count - 1)), len(leaves)]
    parts = pairwise(cuts)
    children = tuple(_random_part(random, leaves[start:end], labels, depth + 1) for start, end in parts)
    return Node(random.choice(labels), children)
