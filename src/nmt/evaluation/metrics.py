"""The metrics of `eval`, by name. To add one, write a `Metric` and register it in `METRICS`."""

from collections.abc import Mapping, Sequence

from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.config.choices import is_text
from nmt.errors import UserError
from nmt.evaluation.bleu import make_bleu
from nmt.evaluation.comet import comet_score
from nmt.evaluation.metric import Metric, Score, Translated, from_sacrebleu
from nmt.evaluation.paper_bleu import paper_bleu
from nmt.evaluation.tree_scores import bracket_metric

METRICS: Mapping[str, Metric] = {
    "bleu": from_sacrebleu("BLEU", make_bleu),
    "bleu_paper": Metric("BLEU as in the paper", paper_bleu),
    "chrf": from_sacrebleu("chrF", lambda _: CHRF()),
    "chrfpp": from_sacrebleu("chrF++", lambda _: CHRF(word_order=2)),
    "ter": from_sacrebleu("TER", lambda _: TER()),
    "comet": Metric("COMET", comet_score, is_wanted=lambda text: bool(text.comet)),
    "bracket_f1": bracket_metric("Bracket F1", lambda counts: counts.f1),
    "bracket_precision": bracket_metric("Bracket precision", lambda counts: counts.precision),
    "bracket_recall": bracket_metric("Bracket recall", lambda counts: counts.recall),
    "complete_match": bracket_metric("Complete match", lambda counts: counts.complete_match),
}
"""By key in eval/<split>.json, in the order in which scores are shown."""


def score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> dict[str, Score]:
    """Score translations against one raw reference each; return the scores by metric."""
    return score_text(Translated(hypotheses, [references], target_lang))


def score_text(text: Translated) -> dict[str, Score]:
    """Score translations against raw references; return the scores by metric: those of trees, or those of text."""
    for references in text.references:
        if len(text.hypotheses) != len(references):
            raise UserError(
                f"there are {len(text.hypotheses):,} translations but {len(references):,} references: "
                "score files with the same number of lines"
            )
    if not text.hypotheses:
        raise UserError("there is nothing to score: the references are empty")
    wanted = {name: metric for name, metric in metrics_of(text.target_lang).items() if metric.is_wanted(text)}
    return {name: metric.score(text) for name, metric in wanted.items()}


def metrics_of(target_lang: str) -> dict[str, Metric]:
    """Return the metrics for a target language by name."""
    return {name: metric for name, metric in METRICS.items() if metric.trees != is_text(target_lang)}


def title(name: str) -> str:
    """Return the title of a metric; for the score of a metric that is no longer registered, its name."""
    return METRICS[name].title if name in METRICS else name
