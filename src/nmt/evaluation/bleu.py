"""sacreBLEU's BLEU with the tokenizer that fits the target language, and the tokens of the paper's BLEU."""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from nmt.config.tree import Config
from nmt.data.corpora import split_settings
from nmt.errors import UserError
from nmt.packages import install_command
from nmt.text.language import base_code

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

LANGUAGE_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
"""sacreBLEU's defaults for languages that are written without spaces, or whose words are many morphemes."""
PLAIN_QUOTES = str.maketrans(dict.fromkeys("„“”‟«»", '"') | dict.fromkeys("‚‘’‛‹›", "'"))
"""Maps typographic quotes to plain ones."""


def bleu_tokenizer(target_lang: str, setting: str = "auto") -> str:
    """Return the name of BLEU's tokenizer, given the target language and `evaluation.bleu_tokenizer`."""
    return LANGUAGE_TOKENIZERS.get(base_code(target_lang), "13a") if setting == "auto" else setting


def bleu_tokenizer_of(config: Config, split: str) -> str:
    """Return the name of BLEU's tokenizer for a split of the prepared data."""
    return bleu_tokenizer(split_settings(config.data, split).target_lang, config.evaluation.bleu_tokenizer)


def check_tokenizers(config: Config, splits: Iterable[str]) -> None:
    """Refuse a tokenizer of BLEU that cannot be loaded, given the names of the splits to score."""
    for split in splits:
        make_bleu(bleu_tokenizer_of(config, split))


def make_bleu(tokenizer: str) -> "BLEU":
    """Return BLEU with a tokenizer; refuse one that sacreBLEU cannot load."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - slow to import

    if tokenizer not in BLEU.TOKENIZERS:  # such as that of a record of another version
        raise UserError(f"sacreBLEU has no tokenizer {tokenizer!r}: run `make eval` again")
    try:
        return BLEU(tokenize=tokenizer)
    except (ImportError, RuntimeError, OSError, AssertionError, SystemExit) as error:
        # no package, another dictionary, or no network to download the tokenizer's model
        extra = tokenizer.removesuffix("-mecab")
        remedy = f"it could not be downloaded ({' '.join(str(error).split())}), so connect to a network"
        if extra != tokenizer:
            remedy = f"install it with {install_command(f'sacrebleu[{extra}]')}"
        raise UserError(
            f"BLEU needs the tokenizer {tokenizer}, which is not installed: {remedy}, or choose another "
            "evaluation.bleu_tokenizer, such as char"
        ) from error


def paper_tokenizer(language: str) -> Callable[[str], str]:
    """Return a function that tokenizes a line as the authors did.

    Quotes become plain, Moses splits the line into tokens without splitting hyphens, and compounds are split after it.
    """
    from sacremoses import MosesTokenizer  # noqa: PLC0415 - slow to import

    moses = MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        tokens: str = moses.tokenize(line.translate(PLAIN_QUOTES), aggressive_dash_splits=False, return_str=True)
        return split_compounds(tokens) if language == "de" else tokens

    return tokenize


def split_compounds(line: str) -> str:
    """Split words at hyphens as the authors' script did.

    It searches from left to right and uses no letter twice, so a-b-c is split once.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)
