"""The metrics of `eval`, by name. To add one, write a `Metric` and name it in `Feature.metrics`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from nmt.config.data import TREES, is_text
from nmt.config.decoding import EvaluationConfig
from nmt.config.registry import imported
from nmt.discovery import features
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.evaluation.metric import Metric, Score, Translated, from_sacrebleu
from nmt.evaluation.paper_bleu import paper_bleu

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric


def make_chrf(*, word_order: int = 0) -> "SacrebleuMetric":
    """Return chrF, or chrF++ if n-grams of words count, too."""
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415 - slow to import

    return CHRF(word_order=word_order)


def _make_ter() -> "SacrebleuMetric":
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415 - slow to import

    return TER()


def _prepare_bleu(settings: EvaluationConfig, target_lang: str) -> None:
    """Load the tokenizer of BLEU."""
    make_bleu(bleu_tokenizer(target_lang, settings.bleu_tokenizer))


_CORE: Mapping[str, Metric] = {
    "bleu": replace(from_sacrebleu("BLEU", make_bleu), prepare=_prepare_bleu),
    "bleu_paper": Metric("BLEU as in the paper", paper_bleu, paper="nmt.evaluation.paper_figures:paper_bleu"),
    "chrf": from_sacrebleu("chrF", lambda _: make_chrf()),
    "chrfpp": from_sacrebleu("chrF++", lambda _: make_chrf(word_order=2)),
    "ter": from_sacrebleu("TER", lambda _: _make_ter()),
}
"""By key in eval/<split>.json, in the order in which scores are shown."""


@cache
def all_metrics() -> Mapping[str, Metric]:
    """Return the metrics of the core and then those of features, by key in eval/<split>.json, in the order shown."""
    return {**_CORE, **{name: imported(code) for each in features().values() for name, code in each.metrics.items()}}


def wanted_metrics(target_lang: str, settings: EvaluationConfig) -> dict[str, Metric]:
    """Return the metrics for a target language that the settings ask for, by name."""
    return {name: metric for name, metric in metrics_of(target_lang).items() if metric.is_wanted(settings)}


def score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> dict[str, Score]:
    """Score translations against one raw reference each; return the scores by metric."""
    return score_text(Translated(hypotheses, [references], target_lang))


def score_text(text: Translated) -> dict[str, Score]:
    """Score translations against raw references; return the scores by metric."""
    for references in text.references:
        if len(text.hypotheses) != len(references):
            raise UserError(
                f"there are {len(text.hypotheses):,} translations but {len(references):,} references: "
                "score files with the same number of lines"
            )
    if not text.hypotheses:
        raise UserError("there is nothing to score: the references are empty")
    return {name: metric.score(text) for name, metric in wanted_metrics(text.target_lang, text.settings).items()}


def metrics_of(target_lang: str) -> dict[str, Metric]:
    """Return the metrics for a target language by name."""
    task = "text" if is_text(target_lang) else TREES
    return {name: metric for name, metric in all_metrics().items() if metric.task == task}


def title(name: str) -> str:
    """Return the title of a metric; for the score of a metric that is no longer registered, its name."""
    found = all_metrics().get(name)
    return found.title if found else name
