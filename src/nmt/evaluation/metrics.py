"""The metrics of `eval`, by name. To add one, compute it in `score_text`, and add its title."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from nmt import __version__
from nmt.config.data import is_text
from nmt.config.decoding import EvaluationConfig
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu, paper_tokenizer
from nmt.evaluation.comet import comet_score
from nmt.parsing.bracket_score import score_trees
from nmt.parsing.linearise import parse_line
from nmt.text.language import base_code

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

TITLES = {
    "bleu": "BLEU",
    "bleu_paper": "BLEU as in the paper",
    "chrf": "chrF",
    "chrfpp": "chrF++",
    "ter": "TER",
    "comet": "COMET",
    "bracket_f1": "Bracket F1",
    "bracket_precision": "Bracket precision",
    "bracket_recall": "Bracket recall",
    "complete_match": "Complete match",
}
"""What reports call a metric, by its key in eval/<split>.json."""
SACREBLEU_METRICS = ("bleu", "chrf", "chrfpp", "ter")
"""Metrics whose significance sacreBLEU tests."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score, and the signature that says how to compute it again."""

    score: float
    signature: str


def score_text(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    target_lang: str,
    sources: Sequence[str] = (),
    settings: EvaluationConfig | None = None,
    device: str = "cpu",
) -> dict[str, Score]:
    """Score translations against raw references; return the scores by metric, in the order in which they are shown.

    Args:
        hypotheses: The translations.
        references: The sentences of each reference.
        target_lang: Their language.
        sources: The source sentences, for COMET.
        settings: The tokenizer of BLEU, and the model of COMET.
        device: The type of the device on which COMET computes.
    """
    settings = settings or EvaluationConfig()
    for each in references:
        if len(hypotheses) != len(each):
            raise UserError(
                f"there are {len(hypotheses):,} translations but {len(each):,} references: "
                "score files with the same number of lines"
            )
    if not hypotheses:
        raise UserError("there is nothing to score: the references are empty")
    if not is_text(target_lang):
        return _bracket_scores(hypotheses, references[0])
    tokenizer = bleu_tokenizer(target_lang, settings.bleu_tokenizer)
    scores = {
        "bleu": _corpus_score(sacrebleu_metric("bleu", tokenizer), hypotheses, references),
        "bleu_paper": _paper_bleu(hypotheses, references, base_code(target_lang)),
        **{name: _corpus_score(sacrebleu_metric(name), hypotheses, references) for name in SACREBLEU_METRICS[1:]},
    }
    if settings.comet:
        scores["comet"] = Score(*comet_score(settings.comet, sources, hypotheses, references[0], device))
    return scores


def sacrebleu_metric(name: str, tokenizer: str = "") -> "Metric":
    """Return the sacreBLEU object of a metric, given BLEU's tokenizer."""
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415 - slow to import
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415

    if name == "bleu":
        return make_bleu(tokenizer)
    return TER() if name == "ter" else CHRF(word_order=2 if name == "chrfpp" else 0)


def _corpus_score(metric: "Metric", hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    result = metric.corpus_score(hypotheses, references)
    return Score(float(result.score), str(metric.get_signature()))


def _paper_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str) -> Score:
    """Return the BLEU of the paper's tokens."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - slow to import

    tokenize = paper_tokenizer(language)
    tokens, *others = [[tokenize(line) for line in lines] for lines in (hypotheses, *references)]
    found = _corpus_score(BLEU(tokenize="none", force=True), tokens, others)
    compounds = "atat" if language == "de" else "whole"
    tokens_by = f"tok:moses-{language}-{version('sacremoses')}|quotes:plain|compounds:{compounds}"
    return Score(found.score, found.signature.replace("tok:none", tokens_by))


def _bracket_scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """Return the scores of linearised trees; a malformed hypothesis is an error sentence."""
    pairs = []
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True), 1):
        tree = parse_line(reference)
        if tree is None:
            raise UserError(f"line {number} of the references is not a linearised tree: run `make data` again")
        pairs.append((tree, parse_line(hypothesis)))
    counts = score_trees(pairs)
    signature = (
        f"evalb|params:COLLINS|len:all|roots:not-counted|sentences:{counts.sentences}|errors:{counts.errors}"
        f"|skipped:{counts.skipped}|version:nmt-{__version__}"
    )
    figures = (counts.f1, counts.precision, counts.recall, counts.complete_match)
    names = ("bracket_f1", "bracket_precision", "bracket_recall", "complete_match")
    return {name: Score(figure, signature) for name, figure in zip(names, figures, strict=True)}
