"""Compare runs: scores with their significance, settings, and the sentences that differ most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sacrebleu.significance import PairedTest, Result

from nmt.errors import UserError
from nmt.evaluation.metrics import METRICS
from nmt.report import about, curves, translations
from nmt.report.page import Absent, part, render
from nmt.report.run import Evaluated, Run

SAMPLES = 1000
"""Resamples of the bootstrap."""
MOST_SENTENCES = 1000
LEVEL = 0.05
"""Differences with a smaller p-value count as significant."""

Runs = Mapping[str, Run]


@dataclass(frozen=True, slots=True)
class Standing:
    """A score of a run, compared with the first run's."""

    run: str
    score: float
    half: float
    """Half the width of the 95 % confidence interval."""
    chance: float | None
    """p-value of the difference from the first run; None for the first run."""

    @property
    def certain(self) -> bool:
        """Whether it differs significantly from the first run's."""
        return self.chance is not None and self.chance < LEVEL


@dataclass(frozen=True, slots=True)
class Contest:
    """A score of a split, run by run."""

    split: str
    name: str
    signature: str
    standings: list[Standing]


def by_name(runs: Sequence[Run]) -> Runs:
    """Return the runs by name; refuse fewer than two different ones."""
    named = {run.name: run for run in runs}
    if len(named) < 2 or len(named) < len(runs):
        raise UserError("a comparison needs two different runs at least: compare=[run_a,run_b]")
    return named


def contests(runs: Runs) -> list[Contest]:
    """Return every score of every split that all runs have translated."""
    shared = shared_splits(runs)
    if not shared:
        raise UserError("these runs have translated no split in common: run `make eval` for each")
    return [contest for split in shared for contest in _contests(split, _evaluated(runs, split))]


def shared_splits(runs: Runs) -> list[str]:
    """Return the splits that all runs have translated, test first."""
    first, *others = runs.values()
    return [split for split in first.splits() if all(split in run.splits() for run in others)]


def _evaluated(runs: Runs, split: str) -> dict[str, Evaluated]:
    found = {name: run.evaluated(split) for name, run in runs.items()}
    texts = {(tuple(each.sources), tuple(each.references)) for each in found.values()}
    if len(texts) > 1:
        raise UserError(f"the runs have translated different texts as {split}, so their scores say nothing together")
    return found


def _contests(split: str, evaluated: Mapping[str, Evaluated]) -> list[Contest]:
    """Compare all runs with the first by the paired bootstrap of sacreBLEU."""
    references = [next(iter(evaluated.values())).references]
    systems: list[tuple[str, Sequence[str]]] = [(name, each.hypotheses) for name, each in evaluated.items()]
    compared = []
    for metric in METRICS.values():
        if metric.sacrebleu is None:
            continue
        test = PairedTest(systems, {"": metric.sacrebleu()}, references, test_type="bs", n_samples=SAMPLES)
        signatures, results = test()
        ((name, signature),) = signatures.items()  # sacreBLEU's own name for the metric
        standings = [_standing(run, result) for run, result in zip(evaluated, results[name], strict=True)]
        compared.append(Contest(split, metric.title, str(signature), standings))
    return compared


def _standing(run: str, result: Result | str) -> Standing:
    assert isinstance(result, Result)
    return Standing(run, float(result.score), float(result.ci or 0.0), result.p_value)


def disagreements(runs: Runs, split: str) -> list[list[Any]]:
    """The sentences of a split, those first in which the second run's chrF differs most from the first's.

    For the page: line, source, first translation and second in parts, second's gain in chrF, its chrF, reference.
    """
    (_, first), (_, second), *_ = _evaluated(runs, split).items()
    pairs = zip(translations.sentences(first), translations.sentences(second), strict=True)
    differing = [(ours, theirs) for ours, theirs in pairs if ours.chrf != theirs.chrf]
    differing.sort(key=lambda pair: -abs(pair[1].chrf - pair[0].chrf))
    return [_row(ours, theirs) for ours, theirs in differing[:MOST_SENTENCES]]


def _row(ours: translations.Sentence, theirs: translations.Sentence) -> list[Any]:
    marked = translations.mark_differences("".join(ours.hypothesis), "".join(theirs.hypothesis))
    gain, score = round(theirs.chrf - ours.chrf, 1), round(theirs.chrf, 1)
    return [ours.number, ours.source, *marked, gain, score, "".join(ours.reference)]


def comparison(runs: Runs) -> str:
    """Return the page of a comparison."""
    found: dict[str, list[list[Any]] | Absent] = {
        split: part(partial(disagreements, runs, split)) for split in shared_splits(runs)
    }
    parts = {
        "runs": [
            {
                "name": name, "recipe": about.recipe(run.config), "where": about.where(run.environment),
                "duration": about.duration(run.seconds()),
            }
            for name, run in runs.items()
        ],
        "contests": part(lambda: contests(runs)),
        "curves": part(lambda: curves.overlaid_curves(runs)),
        "differences": about.differences({name: run.config for name, run in runs.items()}),
        "sentences": {split: each if isinstance(each, Absent) else len(each) for split, each in found.items()},
    }  # fmt: skip
    return render("comparison.html", parts, {
        "sentences": {split: rows for split, rows in found.items() if not isinstance(rows, Absent)},
        "attention": [],
    })  # fmt: skip


def as_text(runs: Runs) -> str:
    """Return the scores and the settings that differ as plain text."""
    width = max(map(len, runs))
    lines = []
    for contest in contests(runs):
        lines.append(f"{contest.split}: {contest.name}  ({contest.signature})")
        for each in contest.standings:
            verdict = "" if each.chance is None else f"  p = {each.chance:.3f}{' *' if each.certain else ''}"
            lines.append(f"  {each.run:<{width}}  {each.score:6.2f} ± {each.half:.2f}{verdict}")
    lines.append(f"\n* differs from {next(iter(runs))} by more than chance (paired bootstrap, p < {LEVEL})")
    differing = about.differences({name: run.config for name, run in runs.items()})
    lines.append("\nsettings that differ:" if differing else "\nno settings differ")
    lines += [f"  {key}: {', '.join(map(str, values))}" for key, values in differing]
    return "\n".join(lines)
