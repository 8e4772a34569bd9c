"""The metrics of linearised trees, and their repair before they are scored."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from nmt import __version__
from nmt.errors import UserError
from nmt.evaluation.metric import Metric, Score, Translated
from nmt.parsing.bracket_score import BracketCounts, score_trees
from nmt.parsing.linearise import Repairs, linearise, parse_line, repair
from nmt.parsing.trees import Node


def bracket_metric(title: str, figure: Callable[[BracketCounts], float]) -> Metric:
    """Return a metric that is a figure of the counts of brackets."""

    def score(text: Translated) -> Score:
        counts = count_brackets(tuple(text.hypotheses), tuple(text.references[0]))
        return Score(figure(counts), _signature(counts))

    return Metric(title, score, trees=True)


@lru_cache(maxsize=1)  # one count for all metrics
def count_brackets(hypotheses: Sequence[str], references: Sequence[str]) -> BracketCounts:
    """Return the counts of brackets of linearised trees; a malformed hypothesis is an error sentence."""
    trees = [_reference(line, number) for number, line in enumerate(references, 1)]
    return score_trees(zip(trees, map(parse_line, hypotheses), strict=True))


def _signature(counts: BracketCounts) -> str:
    return (
        f"evalb|params:COLLINS|len:all|roots:not-counted|sentences:{counts.sentences}|errors:{counts.errors}"
        f"|skipped:{counts.skipped}|version:nmt-{__version__}"
    )


def _reference(line: str, number: int) -> Node:
    tree = parse_line(line)
    if tree is None:
        raise UserError(f"line {number} of the references is not a linearised tree: run `make data` again")
    return tree


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
