"""BLEU as the paper reports it: on Moses tokens, with German compounds split at their hyphens."""

import re
from collections.abc import Callable
from importlib.metadata import version

from nmt.evaluation.metric import Score, Translated, corpus_score
from nmt.text.language import base_code

PLAIN_QUOTES = str.maketrans(dict.fromkeys("„“”‟«»", '"') | dict.fromkeys("‚‘’‛‹›", "'"))
"""Maps typographic quotes to plain ones."""
COMPOUND_LANGUAGES = ("de",)
"""Languages whose hyphenated compounds are split."""


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
    return Score(found.score, found.signature.replace("tok:none", f"tok:{_tokenizer_signature(language)}"))


def paper_tokenizer(language: str) -> Callable[[str], str]:
    """Return a function that tokenizes a line as the authors did.

    Quotes become plain, Moses splits the line into tokens without splitting hyphens, and compounds are split after it.
    """
    from sacremoses import MosesTokenizer  # noqa: PLC0415 - slow to import

    moses = MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        tokens: str = moses.tokenize(line.translate(PLAIN_QUOTES), aggressive_dash_splits=False, return_str=True)
        return split_compounds(tokens) if language in COMPOUND_LANGUAGES else tokens

    return tokenize


def split_compounds(line: str) -> str:
    """Split words at hyphens as the authors' script did.

    It searches from left to right and uses no letter twice, so a-b-c is split once.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def _tokenizer_signature(language: str) -> str:
    compounds = "atat" if language in COMPOUND_LANGUAGES else "whole"
    return f"moses-{language}-{version('sacremoses')}|quotes:plain|compounds:{compounds}"
