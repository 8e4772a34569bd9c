"""Constituency trees: read bracketed files, clean what models do not learn, write and draw."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nmt.errors import UserError

MAX_DEPTH = 200
"""Trees nested more deeply are refused, so that walking a tree never exhausts Python's stack."""
MAX_TREE_WORDS = 5_000
"""Larger trees are refused: a bracket that is never closed must not fill the memory."""
EMPTY_ELEMENT = "-NONE-"
"""The tag of traces and other elements of the Penn Treebank that are not words."""
ROOTS = frozenset({"", "TOP", "ROOT", "S1"})
"""Labels that treebanks and parsers give the bracket around a whole tree."""
ROOT = "TOP"
"""The label of a bracket around a tree that needs one."""
ESCAPES = {"(": "-LRB-", ")": "-RRB-"}
"""How bracketed files write the brackets of the text."""
_TOKENS = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A word and its part-of-speech tag."""

    tag: str
    word: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A phrase: its label and its parts."""

    label: str
    children: tuple["Node | Leaf", ...]


Part = Node | Leaf


def leaves(tree: Part) -> Iterator[Leaf]:
    """Yield the leaves from left to right."""
    if isinstance(tree, Leaf):
        yield tree
        return
    for child in tree.children:
        yield from leaves(child)


def with_leaves(tree: Node, replacements: Iterable[Leaf]) -> Node:
    """Return a tree of the same shape with other leaves."""
    remaining = iter(replacements)

    def replaced(part: Part) -> Part:
        return next(remaining) if isinstance(part, Leaf) else Node(part.label, tuple(map(replaced, part.children)))

    return Node(tree.label, tuple(map(replaced, tree.children)))


def clean(tree: Node) -> Node | None:
    """Remove empty elements, phrases that these leave empty, function tags, and the bracket around the whole tree.

    The bracket around the tree stays, as TOP, if it holds more than one part or only a word. The result is None if the
    tree has no words.
    """
    found = _without_empty(tree)
    if not isinstance(found, Node):
        return None
    while found.label in ROOTS and len(found.children) == 1 and isinstance(found.children[0], Node):
        found = found.children[0]
    return Node(ROOT, found.children) if found.label in ROOTS else found


def _without_empty(part: Part) -> Part | None:
    if isinstance(part, Leaf):
        return None if part.tag == EMPTY_ELEMENT else part
    children = tuple(child for child in map(_without_empty, part.children) if child is not None)
    return Node(category(part.label), children) if children else None


def category(label: str) -> str:
    """Return a label without its function tags: NP of NP-SBJ-1 and of NP=2."""
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0]


def parse_trees(lines: Iterable[str], name: str) -> Iterator[tuple[int, Node]]:
    """Yield the trees of bracketed lines, each with the number of the line on which it begins.

    A line may have several trees, and a tree several lines. Errors call the text `name`.
    """
    stack: list[tuple[list[str], list[Part]]] = []
    """The texts and the parts of each open bracket."""
    first = size = 0
    for number, line in enumerate(lines, 1):
        for token in _TOKENS.findall(line):
            first, size = (first, size + (token != ")")) if stack else (number, 0)
            if token == "(":
                stack.append(([], []))
            elif not stack:
                raise UserError(f"{name}, line {number}: `{token[:40]}` is outside of all brackets: remove it.")
            elif token != ")":
                stack[-1][0].append(token)
            else:
                part = _part(*stack.pop(), is_root=not stack, where=f"{name}, line {number}")
                if stack:
                    stack[-1][1].append(part)
                elif isinstance(part, Node):
                    yield first, part
            if len(stack) > MAX_DEPTH or size > 4 * MAX_TREE_WORDS:
                raise UserError(f"{name}, line {number}: the tree that begins on line {first} is too deep or too long: "
                                "is a bracket not closed?")  # fmt: skip
    if stack:
        raise UserError(
            f"{name}, line {first}: the tree that begins here lacks {len(stack)} closing bracket(s): add them."
        )


def _part(texts: list[str], parts: list[Part], *, is_root: bool, where: str) -> Part:
    """Return what a bracket holds; only the one around a whole tree may lack a label."""
    if parts and len(texts) <= 1 and (texts or is_root):
        return Node("".join(texts), tuple(parts))
    if len(texts) == 2 and not parts and not is_root:
        return Leaf(texts[0], unescape(texts[1]))
    raise UserError(
        f"{where}: ({' '.join(texts)[:40]}{' ...' if parts else ''}) is neither a phrase, such as (NP (DT a) (NN dog)),"
        " nor a tag with one word inside a phrase: correct it, or remove it."
    )


def escape(text: str) -> str:
    """Return a word as bracketed files write it."""
    for character, escaped in ESCAPES.items():
        text = text.replace(character, escaped)
    return text


def unescape(text: str) -> str:
    """Return a word of a bracketed file as the text has it."""
    for character, escaped in ESCAPES.items():
        text = text.replace(escaped, character)
    return text


def bracketed(tree: Part) -> str:
    """Return a tree as a line in brackets."""
    if isinstance(tree, Leaf):
        return f"({tree.tag} {escape(tree.word)})"
    return f"({tree.label} {' '.join(map(bracketed, tree.children))})"


def drawn(tree: Part) -> str:
    """Return a tree drawn as text, a line per phrase or word."""
    return "\n".join(_drawn_lines(tree))


def _drawn_lines(part: Part) -> Iterator[str]:
    if isinstance(part, Leaf):
        yield f"{part.tag} {part.word}"
        return
    yield part.label
    for number, child in enumerate(part.children, 1):
        is_last = number == len(part.children)
        first, *rest = _drawn_lines(child)
        yield f"{'└─' if is_last else '├─'} {first}"
        yield from (f"{'   ' if is_last else '│  '}{line}" for line in rest)
