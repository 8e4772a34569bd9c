"""The metrics of `eval`, by name. To add one, compute it in `score_text`, and add its title."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt import __version__
from nmt.config.data import is_text
from nmt.config.decoding import EvaluationConfig
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu, paper_signature, paper_tokenizer
from nmt.evaluation.comet import comet_score
from nmt.evaluation.comet import load as load_comet
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


@dataclass(frozen=True, slots=True)
class Translated:
    """Translations, with all that a metric may compare them with."""

    hypotheses: Sequence[str]
    references: Sequence[Sequence[str]]
    """The sentences of each reference."""
    target_lang: str
    sources: Sequence[str] = ()
    settings: EvaluationConfig = field(default_factory=EvaluationConfig)
    device: str = "cpu"
    """The type of the device that translated, such as cuda: where COMET computes."""


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
    """Score translations against raw references; return the scores by metric, in the order in which they are shown."""
    for references in text.references:
        if len(text.hypotheses) != len(references):
            raise UserError(
                f"there are {len(text.hypotheses):,} translations but {len(references):,} references: "
                "score files with the same number of lines"
            )
    if not text.hypotheses:
        raise UserError("there is nothing to score: the references are empty")
    if not is_text(text.target_lang):
        return _bracket_scores(text)
    scores = {"bleu": bleu_score(text), "bleu_paper": _paper_bleu(text)}
    for name in SACREBLEU_METRICS[1:]:
        scores[name] = _corpus_score(sacrebleu_metric(name), text.hypotheses, text.references)
    if text.settings.comet:
        found = comet_score(text.settings.comet, text.sources, text.hypotheses, text.references[0], text.device)
        scores["comet"] = Score(*found)
    return scores


def bleu_score(text: Translated) -> Score:
    """Return BLEU of translations, with the tokenizer of their language or of the settings."""
    metric = make_bleu(bleu_tokenizer(text.target_lang, text.settings.bleu_tokenizer))
    return _corpus_score(metric, text.hypotheses, text.references)


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


def _paper_bleu(text: Translated) -> Score:
    """Return the BLEU of the paper's tokens."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - slow to import

    language = base_code(text.target_lang)
    tokenize = paper_tokenizer(language)
    hypotheses, *references = [[tokenize(line) for line in lines] for lines in (text.hypotheses, *text.references)]
    found = _corpus_score(BLEU(tokenize="none", force=True), hypotheses, references)
    return Score(found.score, found.signature.replace("tok:none", f"tok:{paper_signature(language)}"))


def _bracket_scores(text: Translated) -> dict[str, Score]:
    """Return the scores of linearised trees; a malformed hypothesis is an error sentence."""
    pairs = []
    for number, (hypothesis, reference) in enumerate(zip(text.hypotheses, text.references[0], strict=True), 1):
        tree = parse_line(reference)
        if tree is None:
            raise UserError(f"line {number} of the references is not a linearised tree: run `make data` again")
        pairs.append((tree, parse_line(hypothesis)))
    counts = score_trees(pairs)
    signature = (
        f"evalb|params:COLLINS|len:all|roots:not-counted|sentences:{counts.sentences}|errors:{counts.errors}"
        f"|skipped:{counts.skipped}|version:nmt-{__version__}"
    )
    return {
        "bracket_f1": Score(counts.f1, signature),
        "bracket_precision": Score(counts.precision, signature),
        "bracket_recall": Score(counts.recall, signature),
        "complete_match": Score(counts.complete_match, signature),
    }
