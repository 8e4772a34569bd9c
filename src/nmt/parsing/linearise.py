"""Turn trees into the symbols that a model learns, and the symbols that it writes back into trees, with repair.

The form is that of Vinyals, Kaiser et al. (2015), whose setting section 6.3 of the paper takes over: depth first, with
the label in the opening and in the closing bracket, and without the words, which are known: `(S (NP XX )NP (VP XX )VP
. )S`. Tags of words become XX, because evalb does not score them, and learning them costs about one point of F1. Only
the tags of punctuation stay: evalb leaves punctuation out by its tag, on both sides.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass

from nmt.errors import UserError
from nmt.parsing.trees import MAX_DEPTH, ROOT, Leaf, Node, Part, leaves, with_leaves

ANY_TAG = "XX"
"""The symbol of a word whose tag is not kept."""
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
"""The tags of punctuation in the Penn Treebank."""
TAG_OF_PUNCTUATION = {
    ",": ",", ".": ".", "?": ".", "!": ".", ":": ":", ";": ":", "--": ":", "...": ":", "``": "``", "''": "''",
}  # fmt: skip
"""The tags of words that are always punctuation."""
TAGS_OF_MARKS = {"'": {"``", "''"}, '"': {"``", "''"}, "`": {"``"}, "-": {":"}, "_": {":"}}
"""The tags of punctuation that other marks can have; no other word is punctuation."""


def tree_pair(tree: Node, *, keep_tags: bool) -> tuple[str, str]:
    """Return the sentence of a tree, its words separated by spaces, and the linearised tree."""
    return " ".join(leaf.word for leaf in leaves(tree)), linearise(tree, keep_tags=keep_tags)


def linearise(tree: Node, *, keep_tags: bool = False) -> str:
    """Return the symbols of a tree, separated by spaces."""
    return " ".join(_symbols(tree, keep_tags))


def _symbols(part: Part, keep_tags: bool) -> Iterator[str]:
    if isinstance(part, Leaf):
        yield part.tag if keep_tags or part.tag in PUNCTUATION_TAGS else ANY_TAG
        return
    yield f"({part.label}"
    for child in part.children:
        yield from _symbols(child, keep_tags)
    yield f"){part.label}"


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was wrong with linearised trees."""

    missing_brackets: int = 0
    surplus_brackets: int = 0
    missing_words: int = 0
    surplus_words: int = 0
    trees: int = 0
    """Trees that needed any repair."""

    def __str__(self) -> str:
        """Return the counts in words."""
        kinds = {name.replace("_", " "): count for name, count in asdict(self).items() if name != "trees"}
        return f"{self.trees:,} trees ({', '.join(f'{count:,} {kind}' for kind, count in kinds.items())})"

    def __add__(self, other: "Repairs") -> "Repairs":
        """Return the sum of two counts."""
        return Repairs(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))


def parse_line(line: str, words: Sequence[str] | None = None) -> Node | None:
    """Return the tree of a line of symbols, or None if that is not exactly one tree (with one leaf per word)."""
    tree, repairs = repair(line, words)
    return None if repairs.trees else tree


def repair(line: str, words: Sequence[str] | None = None) -> tuple[Node | None, Repairs]:
    """Return the tree of a line of symbols, repaired if it is malformed, and the counts of what was repaired.

    A closing bracket closes all phrases inside its own; one that fits no open phrase is dropped, as are empty phrases.
    Phrases left open are closed at the end, where missing words are added, too. Words that the sentence does not have
    are dropped. Several trees in a row are put under one root.

    Args:
        line: The symbols.
        words: The words of the sentence; if not given, each leaf counts as a word, and leaves have no words.

    Returns:
        The tree, which is None if there are no words.
    """
    stack: list[tuple[str, list[Part]]] = [(ROOT, [])]  # the first holds what is outside of all brackets
    wrong = Counter[str]()
    used = 0

    def close() -> None:
        label, children = stack.pop()
        if children:
            stack[-1][1].append(Node(label, tuple(children)))
        else:
            wrong["surplus_brackets"] += 1

    for symbol in line.split():
        kind, label = symbol[0], symbol[1:]
        if kind == "(" and label and len(stack) <= MAX_DEPTH:
            stack.append((label, []))
        elif kind == ")" and any(label == opened for opened, _ in stack[1:]):
            while stack[-1][0] != label:
                wrong["missing_brackets"] += 1
                close()
            close()
        elif kind in "()":
            wrong["surplus_brackets"] += 1
        elif words is not None and used == len(words):
            wrong["surplus_words"] += 1
        else:
            used += 1
            stack[-1][1].append(Leaf(symbol))
    while len(stack) > 1:
        wrong["missing_brackets"] += 1
        close()
    parts, missing = stack[0][1], 0 if words is None else len(words) - used
    if missing:
        wrong["missing_words"] = missing
        last = parts.pop() if parts and isinstance(parts[-1], Node) else None
        added = [Leaf(ANY_TAG)] * missing
        parts += [Node(last.label, (*last.children, *added))] if isinstance(last, Node) else added
    root = parts[0] if len(parts) == 1 else None
    if not isinstance(root, Node):
        wrong["missing_brackets"] += 2
        root = Node(ROOT, tuple(parts))
    repairs = Repairs(**wrong, trees=int(bool(wrong)))
    if not parts:
        return None, repairs
    return root if words is None else _with_words(root, words), repairs


def _with_words(tree: Node, words: Sequence[str]) -> Node:
    return with_leaves(tree, [Leaf(_tag(leaf.tag, word), word) for leaf, word in zip(leaves(tree), words, strict=True)])


def _tag(tag: str, word: str) -> str:
    """Return the tag of a word: that of punctuation belongs to the word, whatever the model wrote."""
    if word in TAG_OF_PUNCTUATION:
        return TAG_OF_PUNCTUATION[word]
    return ANY_TAG if tag in PUNCTUATION_TAGS - TAGS_OF_MARKS.get(word, set()) else tag


def check_references(sources: Sequence[str], references: Sequence[str], name: str) -> None:
    """Refuse a tree that has not exactly the words of its sentence."""
    for number, (source, reference) in enumerate(zip(sources, references, strict=True), 1):
        if parse_line(reference, source.split()) is None:
            raise UserError(
                f"line {number} of {name}: the tree has not exactly the {len(source.split()):,} words of its sentence: "
                "run `make data` again"
            )


def repair_all(sources: Sequence[str], hypotheses: Sequence[str]) -> tuple[list[str], Repairs]:
    """Return well-formed linearised trees over the words of their sentences, and the counts of what was repaired."""
    lines, total = [], Repairs()
    for source, hypothesis in zip(sources, hypotheses, strict=True):
        tree, repairs = repair(hypothesis, source.split())
        lines.append("" if tree is None else linearise(tree, keep_tags=True))
        total += repairs
    return lines, total
