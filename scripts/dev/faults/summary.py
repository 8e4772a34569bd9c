"""Summarise the outcomes of a campaign: a table and a line with the totals."""

from collections import Counter
from collections.abc import Sequence

from faults.recovery import Outcome, Trial, Verdict

Results = Sequence[tuple[Trial, Outcome]]


def table(results: Results) -> list[str]:
    """Return a table with one row per kind of fault."""
    kinds = list(dict.fromkeys(trial.kind for trial, _ in results))
    counts = Counter((trial.kind, outcome.verdict) for trial, outcome in results)
    rows = [(kind, {verdict: counts[kind, verdict] for verdict in Verdict}) for kind in kinds]
    lines = [f"{'fault':<32}{'injected':>10}{'recovered':>11}{'refused with a clear line':>27}{'lost':>6}{'missed':>8}"]
    for name, row in [*rows, ("all", _by_verdict(results))]:
        recovered, refused, lost, missed = (row[verdict] for verdict in Verdict)
        injected = recovered + refused + lost
        lines.append(f"{name:<32}{injected:>10,}{recovered:>11,}{refused:>27,}{lost:>6,}{missed:>8,}")
    return lines


def total(results: Results) -> str:
    """Return one line with the totals; faults that were never injected do not count."""
    counts = _by_verdict(results)
    missed = counts[Verdict.MISSED]
    return f"{len(results) - missed:,} injected, {counts[Verdict.LOST]:,} lost; {missed:,} never injected"


def _by_verdict(results: Results) -> Counter[Verdict]:
    return Counter(outcome.verdict for _, outcome in results)
