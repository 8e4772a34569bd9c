"""The metrics of `eval`, by name. To add one, write a `Metric` and add a line to `TEXT_METRICS`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from nmt import __version__
from nmt.config.data import is_text
from nmt.config.decoding import EvaluationConfig
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu, paper_signature, paper_tokenizer
from nmt.evaluation.comet import comet_score
from nmt.evaluation.comet import load as load_comet
from nmt.parsing.bracket_score import BracketCounts, score_trees
from nmt.parsing.linearise import parse_line
from nmt.parsing.trees import Node
from nmt.text.language import base_code

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric


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
    """The type of the device that translated, such as cuda: where a metric with a model computes."""

    @property
    def tokenizer(self) -> str:
        """The name of BLEU's tokenizer."""
        return bleu_tokenizer(self.target_lang, self.settings.bleu_tokenizer)


@dataclass(frozen=True, slots=True)
class Metric:
    """A way to score the translations of a text."""

    title: str
    """Its name in reports, such as chrF."""
    score: Callable[[Translated], Score]
    """Compute the score of translations."""
    sacrebleu: "Callable[[str], SacrebleuMetric] | None" = None
    """Make the sacreBLEU object that significance tests resample, if the metric has one, given BLEU's tokenizer."""


def from_sacrebleu(title: str, make: Callable[[str], "SacrebleuMetric"]) -> Metric:
    """Return one of sacreBLEU's metrics, computed on the raw text, given a function from BLEU's tokenizer to it."""

    def score(text: Translated) -> Score:
        return corpus_score(make(text.tokenizer), text.hypotheses, text.references)

    return Metric(title, score, sacrebleu=make)


def corpus_score(metric: "SacrebleuMetric", hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """Return the score that a sacreBLEU metric gives a text, with sacreBLEU's signature."""
    result = metric.corpus_score(hypotheses, references)
    return Score(float(result.score), str(metric.get_signature()))


def make_chrf(*, word_order: int = 0) -> "SacrebleuMetric":
    """Return chrF, or chrF++ if n-grams of words count, too."""
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415 - slow to import

    return CHRF(word_order=word_order)


def _make_ter() -> "SacrebleuMetric":
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415 - slow to import

    return TER()


def paper_bleu(text: Translated) -> Score:
    """Return the BLEU of the paper's tokens."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - slow to import

    language = base_code(text.target_lang)
    tokenize = paper_tokenizer(language)
    found = corpus_score(
        BLEU(tokenize="none", force=True),
        [tokenize(line) for line in text.hypotheses],
        [[tokenize(line) for line in lines] for lines in text.references],
    )
    return Score(found.score, found.signature.replace("tok:none", f"tok:{paper_signature(language)}"))


def _comet(text: Translated) -> Score:
    model, reference = text.settings.comet, text.references[0]
    return Score(*comet_score(model, text.sources, text.hypotheses, reference, text.device))


def _of_brackets(title: str, figure: Callable[[BracketCounts], float]) -> Metric:
    """Return a metric that is a figure of the counts of brackets."""

    def score(text: Translated) -> Score:
        counts = count_brackets(tuple(text.hypotheses), tuple(text.references[0]))
        return Score(figure(counts), _brackets_signature(counts))

    return Metric(title, score)


@lru_cache(maxsize=1)  # one count for all metrics
def count_brackets(hypotheses: Sequence[str], references: Sequence[str]) -> BracketCounts:
    """Return the counts of brackets of linearised trees; a malformed hypothesis is an error sentence."""
    trees = [_reference_tree(line, number) for number, line in enumerate(references, 1)]
    return score_trees(zip(trees, map(parse_line, hypotheses), strict=True))


def _brackets_signature(counts: BracketCounts) -> str:
    return (
        f"evalb|params:COLLINS|len:all|roots:not-counted|sentences:{counts.sentences}|errors:{counts.errors}"
        f"|skipped:{counts.skipped}|version:nmt-{__version__}"
    )


def _reference_tree(line: str, number: int) -> Node:
    tree = parse_line(line)
    if tree is None:
        raise UserError(f"line {number} of the references is not a linearised tree: run `make data` again")
    return tree


TEXT_METRICS: Mapping[str, Metric] = {
    "bleu": from_sacrebleu("BLEU", make_bleu),
    "bleu_paper": Metric("BLEU as in the paper", paper_bleu),
    "chrf": from_sacrebleu("chrF", lambda _: make_chrf()),
    "chrfpp": from_sacrebleu("chrF++", lambda _: make_chrf(word_order=2)),
    "ter": from_sacrebleu("TER", lambda _: _make_ter()),
    "comet": Metric("COMET", _comet),
}
"""By key in eval/<split>.json, in the order in which scores are shown."""
BRACKET_METRICS: Mapping[str, Metric] = {
    "bracket_f1": _of_brackets("Bracket F1", lambda counts: counts.f1),
    "bracket_precision": _of_brackets("Bracket precision", lambda counts: counts.precision),
    "bracket_recall": _of_brackets("Bracket recall", lambda counts: counts.recall),
    "complete_match": _of_brackets("Complete match", lambda counts: counts.complete_match),
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
