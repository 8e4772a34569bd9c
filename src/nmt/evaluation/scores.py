"""How good translations are: BLEU today's way and the paper's, chrF and TER, each with its signature."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacremoses import MosesTokenizer

from nmt.errors import UserError

PLAIN_QUOTES = str.maketrans(dict.fromkeys("„“”‟«»", '"') | dict.fromkeys("‚‘’‛‹›", "'"))
"""Typographic quotes to plain ones."""

COMPOUND_LANGUAGES = ("de",)
"""Languages whose hyphenated compounds the paper's BLEU splits."""


@dataclass(frozen=True, slots=True)
class Score:
    """A number, and all that one must know to get it again."""

    score: float
    signature: str


def score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> dict[str, Score]:
    """Score translations against raw references, line by line: bleu, bleu_paper, chrf and ter."""
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses):,} translations stand against {len(references):,} references: "
            "score files that hold the same sentences, one a line"
        )
    if not references:
        raise UserError("there is nothing to score: the references are empty")
    bleu = corpus_score(BLEU(), hypotheses, references)
    paper = paper_tokens(target_lang)
    paper_bleu = corpus_score(
        BLEU(tokenize="none", force=True), [paper(line) for line in hypotheses], [paper(line) for line in references]
    )
    return {
        "bleu": bleu,
        "bleu_paper": Score(
            paper_bleu.score, paper_bleu.signature.replace("tok:none", f"tok:{paper_tokens_signature(target_lang)}")
        ),
        "chrf": corpus_score(CHRF(), hypotheses, references),
        "ter": corpus_score(TER(), hypotheses, references),
    }


def corpus_score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The score of one of sacreBLEU's metrics."""
    result = metric.corpus_score(hypotheses, [references])
    return Score(float(result.score), str(metric.get_signature()))


def paper_tokens(language: str) -> Callable[[str], str]:
    """How the paper's BLEU sees a line: plain quotes, Moses tokens with hyphens left whole, compounds split."""
    moses = MosesTokenizer(lang=language)

    def tokens(line: str) -> str:
        tokenized: str = moses.tokenize(line.translate(PLAIN_QUOTES), aggressive_dash_splits=False, return_str=True)
        return split_compounds(tokenized) if language in COMPOUND_LANGUAGES else tokenized

    return tokens


def paper_tokens_signature(language: str) -> str:
    """What `paper_tokens` does, as a part of a signature."""
    compounds = "atat" if language in COMPOUND_LANGUAGES else "whole"
    return f"moses-{language}-{version('sacremoses')}|quotes:plain|hyphens:whole|compounds:{compounds}"


def split_compounds(line: str) -> str:
    """Split at hyphens as the authors' script did: left to right, no letter used twice (a-b-c splits once)."""
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)
