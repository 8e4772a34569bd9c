"""Constituency trees: read bracketed files, clean what models do not learn, write and draw."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nmt.errors import UserError
from nmt.text.lines import read_lines

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


def words(tree: Node) -> list[str]:
    """Return the words of a tree."""
    return [leaf.word for leaf in leaves(tree)]


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
    return Node(without_function_tags(part.label), children) if children else None


def without_function_tags(label: str) -> str:
    """Return the category of a label: NP of NP-SBJ-1 and of NP=2."""
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0]


def read_trees(path: Path) -> Iterator[tuple[int, Node]]:
    """Yield the trees of a bracketed file (plain, .gz or .xz), each with the number of the line on which it begins.

    The file may have several trees per line or lines per tree.
    """
    return _numbered_trees(read_lines(path), str(path))


def parse_trees(lines: Iterable[str], name: str) -> Iterator[Node]:
    """Yield the trees of bracketed lines; errors call the text `name`."""
    return (tree for _, tree in _numbered_trees(lines, name))


def _numbered_trees(lines: Iterable[str], name: str) -> Iterator[tuple[int, Node]]:
    stack: list[_Open] = []
    first = words = 0
    for number, line in enumerate(lines, 1):
        for token in _TOKENS.findall(line):
            if not stack:
                first, words = number, 0
            try:
                part = _read(token, stack)
                words += isinstance(part, Leaf)
                if words > MAX_TREE_WORDS:
                    raise ValueError(f"a tree of more than {MAX_TREE_WORDS:,} words: is a bracket not closed?")
            except ValueError as error:
                raise UserError(f"{name}, line {number}: {error}") from error
            if isinstance(part, Node) and not stack:
                yield first, part
    if stack:
        raise UserError(
            f"{name}, line {first}: the tree that begins here lacks {len(stack)} closing bracket(s): add them."
        )


@dataclass(slots=True)
class _Open:
    """A bracket that is not closed yet."""

    texts: list[str] = field(default_factory=list)
    """Its label and, if it is a leaf, the word."""
    children: list[Part] = field(default_factory=list)


def _read(token: str, stack: list[_Open]) -> Part | None:
    """Read a token into the innermost open bracket; return what it closes, or raise ValueError."""
    if token == "(":
        if len(stack) == MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} brackets are open: is one not closed?")
        stack.append(_Open())
        return None
    if not stack:
        problem = "a `)` without its `(`: remove it, or add what is missing."
        outside = f"`{token[:40]}` is outside of all brackets: is there a `)` too many before it?"
        raise ValueError(problem if token == ")" else outside)
    if token != ")":
        if stack[-1].children or len(stack[-1].texts) == 2:
            raise ValueError(f"`{token[:40]}` needs a bracket of its own, with its tag: (TAG {token[:40]}).")
        stack[-1].texts.append(token)
        return None
    part = _closed(stack.pop(), is_root=not stack)
    if stack:
        stack[-1].children.append(part)
    return part


def _closed(bracket: _Open, is_root: bool) -> Part:
    label, *word = bracket.texts or [""]
    if not bracket.children and not word:
        raise ValueError(f"({f'{label[:40]} ' if label else ''}) holds neither words nor phrases: remove it.")
    if not bracket.children:
        if is_root:
            raise ValueError(f"the tree is a single word: put a phrase around it, as in (NP ({label} ...)).")
        return Leaf(label, unescape(*word))
    if word:
        raise ValueError(f"({label} {word[0]}"[:41] + " holds both a word and phrases: separate them.")
    if not label and not is_root:
        raise ValueError("a bracket inside a tree has no label: add one, or remove the bracket.")
    return Node(label, tuple(bracket.children))


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
