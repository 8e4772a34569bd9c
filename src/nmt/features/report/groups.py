"""Compare groups of runs that differ in their seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, stdev

from nmt.errors import UserError
from nmt.features.report import about
from nmt.features.report.comparison import (
    SIGNIFICANCE_LEVEL,
    Runs,
    read_same_text,
    render_comparison,
    search_warnings,
    shared_splits,
)
from nmt.features.report.page import build_section
from nmt.features.report.run import Run
from nmt.features.report.seeds import GroupScores, group_scores, p_value
from nmt.runs.section import Absent

Groups = Mapping[str, Sequence[Run]]
"""The runs of each group by its pattern; the others are compared with the first."""

EXPLANATION = (
    "±: standard deviation of the seeds. p: how often a difference at least this large occurs by chance if both groups "
    "are equally good, with other seeds and other test sentences (t-test; variance of the seeds pooled over both "
    "groups, that of the sentences from a bootstrap)"
)


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The scores of a group, compared with those of the first group."""

    group: str
    scores: list[float]
    """One per run."""
    mean: float
    spread: float | None
    """The standard deviation of the runs; None for a single run."""
    p_value: float | None
    """None for the first group, if both groups have a single run, or if the metric cannot be resampled."""

    @property
    def is_significant(self) -> bool:
        """Whether the group differs significantly from the first one."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """The scores of all groups by one metric on one split."""

    split: str
    metric: str
    """The title of the metric."""
    signature: str
    scores: list[GroupScore]


def all_runs(groups: Groups) -> Runs:
    """Return the runs of all groups by name; refuse a run that is in two groups."""
    runs = list(chain.from_iterable(groups.values()))
    names = [run.name for run in runs]
    if len(names) < 2:
        raise UserError(f"compare: {', '.join(groups)} is only one run: a group needs at least two")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"compare: {twice[0]} is in two groups: choose patterns that have no run in common")
    return {run.name: run for run in runs}


def compare_groups(groups: Groups) -> list[GroupComparison]:
    """Compare the scores of every split that all runs have translated."""
    runs = all_runs(groups)
    splits = shared_splits(runs)
    if not splits:
        raise UserError("there is no split that all of these runs have translated: run `make eval` for each")
    return [each for split in splits for each in _compare_split(split, groups)]


def _compare_split(split: str, groups: Groups) -> list[GroupComparison]:
    found = read_same_text(all_runs(groups), split)
    first, compared = next(iter(found.values())), []
    for name, metric in first.compared_metrics.items():
        if metric.sacrebleu is not None:
            make = metric.sacrebleu(first.bleu_tokenizer)
            scored = {
                group: group_scores(make, [found[run.name].hypotheses for run in runs], first.all_references)
                for group, runs in groups.items()
            }
            baseline = next(iter(scored.values()))
            scores = [_group_score(group, each, baseline) for group, each in scored.items()]
            compared.append(GroupComparison(split, metric.title, str(make.get_signature()), scores))
        elif all(name in each.scores.scores for each in found.values()):
            scores = [
                _recorded(group, [found[run.name].scores.scores[name].score for run in runs])
                for group, runs in groups.items()
            ]
            compared.append(GroupComparison(split, metric.title, first.scores.scores[name].signature, scores))
    return compared


def _recorded(group: str, scores: list[float]) -> GroupScore:
    """Return the scores that `eval` wrote, for a metric that cannot be resampled."""
    return GroupScore(group, scores, fmean(scores), stdev(scores) if len(scores) > 1 else None, None)


def _group_score(name: str, found: GroupScores, baseline: GroupScores) -> GroupScore:
    p = None if found is baseline else p_value(baseline, found)
    return GroupScore(name, found.scores, found.mean, found.spread, p)


def warnings(groups: Groups) -> list[str]:
    """Return what is wrong with groups: runs with the same seed, or that differ in their search or other settings."""
    found = search_warnings(all_runs(groups))
    for name, runs in groups.items():
        differing = [key for key, _ in about.differences({run.name: run.config for run in runs}) if key != "seed"]
        seeds = [run.config.seed for run in runs]
        if differing:
            found.append(f"the runs of {name} differ in more than their seed: {', '.join(differing)}")
        if len(set(seeds)) < len(seeds):
            found.append(f"runs of {name} have the same seed, so that their spread is too small")
    return found


def setting_differences(groups: Groups) -> list[tuple[str, list[object]]]:
    """Return the settings in which the first runs of the groups differ."""
    found = about.differences({name: runs[0].config for name, runs in groups.items()})
    return [(key, values) for key, values in found if key != "seed"]


def as_text(groups: Groups) -> str:
    """Return the scores of the groups and the settings that differ as plain text."""
    width = max(map(len, groups))
    lines, comparisons = [], compare_groups(groups)
    for compared in comparisons:
        lines.append(f"{compared.split}: {compared.metric}  ({compared.signature})")
        lines += [f"  {each.group:<{width}}  {_written(each)}" for each in compared.scores]
    lines += ["", EXPLANATION]
    if any(each.p_value is not None for compared in comparisons for each in compared.scores):
        lines.append(f"* differs significantly from {next(iter(groups))} (p < {SIGNIFICANCE_LEVEL})")
    lines += ["", *(f"warning: {warning}" for warning in warnings(groups))]
    differing = setting_differences(groups)
    lines.append("settings that differ:" if differing else "no settings differ")
    lines += [f"  {key}: {', '.join(map(str, values))}" for key, values in differing]
    return "\n".join(lines)


def group_page(groups: Groups) -> str:
    """Return the page of a comparison of groups; the sentences are those of the first runs of two groups."""
    runs = all_runs(groups)
    firsts = [members[0].name for members in groups.values()]
    compared = build_section(lambda: compare_groups(groups))
    sections = {
        "groups": compared,
        "notes": [] if isinstance(compared, Absent) else [EXPLANATION, *warnings(groups)],
        "differences": setting_differences(groups),
        "columns": list(groups),
    }
    return render_comparison(runs, (firsts if len(firsts) > 1 else list(runs))[:2], sections)


def _written(score: GroupScore) -> str:
    """Return mean, spread, single scores and p-value as text."""
    spread = "" if score.spread is None else f" ± {score.spread:.2f}"
    singles = ", ".join(f"{each:.2f}" for each in score.scores)
    p = "" if score.p_value is None else f"  p = {score.p_value:.3f}{' *' if score.is_significant else ''}"
    return f"{score.mean:6.2f}{spread}  ({singles}){p}"
