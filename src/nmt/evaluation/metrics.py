"""The metrics of `eval`, by name. To add one, write a `Metric` and add a line to `TEXT_METRICS`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nmt.config.data import is_text
from nmt.config.decoding import EvaluationConfig
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.evaluation.bracket_metrics import BRACKET_METRICS
from nmt.evaluation.comet import comet_score
from nmt.evaluation.comet_model import load as load_comet
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


TEXT_METRICS: Mapping[str, Metric] = {
    "bleu": from_sacrebleu("BLEU", make_bleu),
    "bleu_paper": Metric("BLEU as in the paper", paper_bleu),
    "chrf": from_sacrebleu("chrF", lambda _: make_chrf()),
    "chrfpp": from_sacrebleu("chrF++", lambda _: make_chrf(word_order=2)),
    "ter": from_sacrebleu("TER", lambda _: _make_ter()),
    "comet": Metric("COMET", comet_score),
}
"""By key in eval/<split>.json, in the order in which scores are shown."""


def metrics_of(target_lang: str) -> Mapping[str, Metric]:
    """Return the metrics for a target language by name."""
    return TEXT_METRICS if is_text(target_lang) else BRACKET_METRICS


def prepare_metrics(target_lang: str, settings: EvaluationConfig) -> None:
    """Load what the metrics for a target language need, so that they fail before hours of translation."""
    if is_text(target_lang):
        make_bleu(bleu_tokenizer(target_lang, settings.bleu_tokenizer))
        if settings.comet:
            load_comet(settings.comet, "evaluation.comet")


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
    skipped = () if text.settings.comet else ("comet",)
    metrics = metrics_of(text.target_lang)
    return {name: metric.score(text) for name, metric in metrics.items() if name not in skipped}


def title(name: str) -> str:
    """Return the title of a metric; for the score of a metric that is no longer there, its name."""
    found = {**TEXT_METRICS, **BRACKET_METRICS}.get(name)
    return found.title if found else name
