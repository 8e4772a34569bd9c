"""Lines of linearised trees beside the lines of their sentences: what is refused, and what is repaired."""

from collections.abc import Sequence

from nmt.errors import UserError
from nmt.parsing.linearise import Repairs, linearise, parse_line, repair


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
