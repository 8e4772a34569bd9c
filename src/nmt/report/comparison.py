"""Compare runs: scores with their significance, settings, and the sentences that differ most."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sacrebleu.significance import PairedTest, Result

from nmt.config.data import is_text
from nmt.config.keys import written
from nmt.errors import UserError, for_this_installation
from nmt.evaluation.metrics import SACREBLEU_METRICS, TITLES, sacrebleu_metric
from nmt.evaluation.record import EvaluationRecord
from nmt.report import about, charts
from nmt.report.page import SENTENCES, Absent, build_section, render
from nmt.report.run import Evaluated, Run
from nmt.report.sentences import Sentence, sentences
from nmt.runs.layout import WEIGHTS
from nmt.runs.scores import search_settings

BOOTSTRAP_SAMPLES = 1000
SIGNIFICANCE_LEVEL = 0.05
"""Differences with a smaller p-value count as significant."""

Runs = Mapping[str, Run]
"""Runs by name; the others are compared with the first."""


class RunScore(NamedTuple):
    """A score of a run, compared with the score of the first run."""

    run: str
    score: float
    margin: float | None = None
    """Half the width of the 95 % confidence interval; None if the metric cannot be resampled."""
    p_value: float | None = None
    """p-value of the difference from the first run; None for the first run, or if the metric cannot be resampled."""

    @property
    def is_significant(self) -> bool:
        """Whether the score differs significantly from the score of the first run."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL


class ScoreComparison(NamedTuple):
    """The scores of all runs by one metric on one split."""

    split: str
    metric: str
    """The title of the metric."""
    signature: str
    scores: list[RunScore]


Scores = Sequence[ScoreComparison] | Absent
"""The scores of the runs, or why they have none in common."""


def by_name(runs: Sequence[Run]) -> Runs:
    """Return the runs by name; refuse fewer than two different runs."""
    named = {run.name: run for run in runs}
    if len(named) < 2 or len(named) < len(runs):
        raise UserError("a comparison needs at least two different runs: compare=[run_a,run_b]")
    return named


def compare_scores(runs: Runs) -> list[ScoreComparison]:
    """Compare the scores of every split that all runs have translated with those of the first run."""
    shared = _shared_splits(runs)
    if not shared:
        raise UserError("there is no split that all of these runs have translated: run `make eval` for each")
    texts = {split: _read_same_text(runs, split) for split in shared}
    return [each for split, text in texts.items() for each in (*_compare_split(split, text), *_costs(split, text))]


def _shared_splits(runs: Runs) -> list[str]:
    """Return the splits that all runs have translated, test first."""
    first, *others = runs.values()
    return [split for split in first.splits() if all(split in run.splits() for run in others)]


def _read_same_text(runs: Runs, split: str) -> dict[str, Evaluated]:
    """Return the translations of a split by each run; refuse runs whose text differs."""
    found = {name: run.evaluated(split) for name, run in runs.items()}
    if len({(*each.text.untagged_sources, *each.text.references) for each in found.values()}) > 1:
        raise UserError(f"the text of {split} differs between the runs, so their scores cannot be compared")
    return found


def _compare_split(split: str, evaluated: Mapping[str, Evaluated]) -> list[ScoreComparison]:
    """Compare runs by the paired bootstrap of sacreBLEU; of trees, return the scores that `eval` wrote."""
    first = next(iter(evaluated.values()))
    if not is_text(first.scores.languages[1]):
        return [
            ScoreComparison(split, TITLES.get(name, name), found.signature, [
                RunScore(run, each.scores.scores[name].score) for run, each in evaluated.items()
            ])
            for name, found in first.scores.scores.items()
        ]  # fmt: skip
    metrics = {name: sacrebleu_metric(name, first.scores.bleu_tokenizer) for name in SACREBLEU_METRICS}
    systems: list[tuple[str, Sequence[str]]] = [(name, each.hypotheses) for name, each in evaluated.items()]
    test = PairedTest(systems, metrics, first.text.all_references, test_type="bs", n_samples=BOOTSTRAP_SAMPLES)
    signatures, results = test()
    compared = []
    for metric, (name, signature) in zip(metrics, signatures.items(), strict=True):  # `name` is sacreBLEU's own
        found = [each for each in results[name] if isinstance(each, Result)]
        scores = []
        for run, each in zip(evaluated, found, strict=True):
            # sacreBLEU calls equal scores significantly different
            p_value = 1.0 if each.p_value is not None and each.score == found[0].score else each.p_value
            scores.append(RunScore(run, float(each.score), float(each.ci or 0.0), p_value))
        compared.append(ScoreComparison(split, TITLES[metric], str(signature), scores))
    return compared


def _costs(split: str, evaluated: Mapping[str, Evaluated]) -> list[ScoreComparison]:
    """Compare the speed of the models, and the size of their weights if all of them are there."""
    records = {name: each.scores for name, each in evaluated.items()}
    machines = ", ".join(dict.fromkeys(each.machine for each in records.values()))
    speeds = [RunScore(name, each.sentences_per_second) for name, each in records.items()]
    sizes = [RunScore(name, _megabytes(each)) for name, each in records.items()]
    return [
        ScoreComparison(split, "Sentences per second", machines, speeds),
        *([ScoreComparison(split, "Megabytes", "weights", sizes)] if all(each.score for each in sizes) else []),
    ]


def _megabytes(record: EvaluationRecord) -> float:
    """Return the size of the weights that translated, all models of an ensemble together; 0 if it is not known."""
    if (checkpoint := record.checkpoint) is None:
        return 0.0
    files = [Path(each.path) / WEIGHTS for each in (checkpoint, *checkpoint.ensemble)]
    if checkpoint.export:
        files = [Path(checkpoint.export) / "model.bin"]
    size = sum(file.stat().st_size if file.is_file() else -math.inf for file in files)
    return max(0.0, size / 1e6 / (4 if record.engine == "int8" else 1))


def _search_warnings(runs: Runs) -> list[str]:
    """Name the settings of the search that differ between the translations of a split by these runs."""
    found = []
    for split in _shared_splits(runs):
        searches = {name: run.scores(split).decoding for name, run in runs.items()}
        known = {name: search_settings(search) for name, search in searches.items() if search is not None}
        for key in dict.fromkeys(chain.from_iterable(known.values())):
            values = {name: written(each[key]) for name, each in known.items()}
            if len(set(values.values())) > 1:
                of_each = ", ".join(f"{value} for {name}" for name, value in values.items())
                found.append(f"{split} was translated with different searches: decoding.{key} is {of_each}")
    return found


def _differing_sentences(runs: Runs, split: str) -> list[tuple[Sentence, Sentence]]:
    """Return the sentences of a split whose chrF differs most between two runs, largest difference first."""
    first, second = map(sentences, _read_same_text(runs, split).values())
    gaps = [(abs(ours.chrf - theirs.chrf), ours, theirs) for ours, theirs in zip(first, second, strict=True)]
    gaps.sort(key=lambda gap: -gap[0])
    return [(ours, theirs) for gap, ours, theirs in gaps[:SENTENCES] if gap]


def comparison(runs: Runs, scores: Scores) -> str:
    """Return the page of a comparison."""
    pair = dict(list(runs.items())[:2])
    return render(
        "comparison.html",
        runs=runs,
        scores=scores,
        notes=_search_warnings(runs),
        curves=build_section(lambda: charts.overlaid_curves(runs)),
        differences=about.differences({name: run.config for name, run in runs.items()}),
        pair=list(pair),
        sentences={split: build_section(partial(_differing_sentences, pair, split)) for split in _shared_splits(pair)},
    )


def as_text(runs: Runs, scores: Scores) -> str:
    """Return the scores and the settings that differ as plain text."""
    width, lines = max(map(len, runs)), list[str]()
    if isinstance(scores, Absent):
        lines.append(f"scores: {for_this_installation(scores.reason)}")
        scores = []
    for compared in scores:
        lines.append(f"{compared.split}: {compared.metric}  ({compared.signature})")
        for each in compared.scores:
            margin = "" if each.margin is None else f" ± {each.margin:.2f}"
            p_value = "" if each.p_value is None else f"  p = {each.p_value:.3f}{' *' if each.is_significant else ''}"
            lines.append(f"  {each.run:<{width}}  {each.score:6.2f}{margin}{p_value}")
    if any(each.is_significant for compared in scores for each in compared.scores):
        lines.append(f"* differs significantly from {next(iter(runs))} (paired bootstrap, p < {SIGNIFICANCE_LEVEL})")
    lines += [f"warning: {warning}" for warning in _search_warnings(runs)]
    differing = about.differences({name: run.config for name, run in runs.items()})
    lines.append("settings that differ:" if differing else "no settings differ")
    lines += [f"  {key}: {', '.join(map(str, values))}" for key, values in differing]
    return "\n".join(lines)
