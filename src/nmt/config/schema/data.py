"""The settings of the corpus and its tokenizer."""

import math
from dataclasses import dataclass, field

from nmt.config.checks import (
    ADJUSTABLE,
    NOT_OF_THE_TEXT,
    OF_ONE_CORPUS,
    check_at_least,
    check_between,
    check_choice,
    check_language,
    check_plain_name,
)
from nmt.config.choices import CHOICES
from nmt.errors import ConfigError

TABLES = ("hub", "files")
"""Sources that read tables and files, in which settings name columns and test sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """The source of the parallel text, and which pairs are kept."""

    corpus: str = field(default="wmt14_en_de", metadata=NOT_OF_THE_TEXT)
    """Name of the prepared data, which is stored in `<paths.data>/<corpus>/`."""
    source: str = "hub"
    """Kind of source."""
    engine: str = field(default="processes", metadata={**NOT_OF_THE_TEXT, **ADJUSTABLE})
    """Where the text is filtered and encoded, which does not change it."""
    source_lang: str = "en"
    """Language to translate from."""
    target_lang: str = "de"
    """Language to translate into, or another kind of target side."""
    train: list[str] = field(default_factory=lambda: ["train"], metadata=OF_ONE_CORPUS)
    """Training text: a Hub split, or files (the source language first, or one file with both)."""
    valid: list[str] = field(default_factory=lambda: ["validation"], metadata=OF_ONE_CORPUS)
    """Validation text, like `test`."""
    test: list[str] = field(default_factory=lambda: ["test"], metadata=OF_ONE_CORPUS)
    """Test text, like `train`; or text files with further references after the first two."""
    columns: list[str] = field(default_factory=list)
    """Columns of source and target in tables that do not name them after the languages."""
    seed: int = 1
    """Seed of the demo corpus, apart from `seed`, so that runs of several seeds have the same text."""
    hold_out: float = field(default=0.0, metadata=OF_ONE_CORPUS)
    """Share of the training pairs held out as `valid`, and again as `test`, if these are empty."""
    hub_dataset: str = "wmt/wmt14"
    """Data set on the Hub, or a local folder in the Hub's layout."""
    hub_config: str = "de-en"
    """Configuration of the Hub data set, such as a language pair."""
    hub_revision: str = "b199e406369ec1b7634206d3ded5ba45de2fe696"
    """Revision of the Hub data set: a full commit, so the text never changes."""
    check_counts: bool = field(default=True, metadata=NOT_OF_THE_TEXT)
    """Refuse a Hub data set with another number of pairs than known."""
    drop_copies: bool = False
    """Drop training pairs with identical source and target."""
    max_words: int = 250
    """Drop training pairs with more words than this in the source or the target; 0 for no limit."""
    max_ratio: float = 0.0
    """Drop training pairs if one side is longer than the other by more than this factor; 0 for no limit."""
    max_character_ratio: float = 0.0
    """Drop training pairs if one side has more characters than the other by more than this factor; 0 for no limit."""
    score_column: str = ""
    """Column with a score per training pair, in tables that have one; pairs below min_score are dropped."""
    min_score: float = 0.0
    """The lowest score that score_column may have."""
    deduplicate: bool = False
    """Drop training pairs that repeat an earlier one; case, white space, punctuation and digits do not count."""
    max_pieces: int = 256
    """Drop training pairs with more word pieces than this in the source or the target."""
    tag: str = field(default="", metadata=OF_ONE_CORPUS)
    """A word put before each source sentence, such as <de> for the target language; it gets an id of its own."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("data.source", self.source, CHOICES["data.source"])
        check_choice("data.engine", self.engine, CHOICES["data.engine"])
        check_plain_name("data.corpus", self.corpus)
        if not 0 <= self.hold_out < 0.5:
            raise ConfigError(
                f"data.hold_out={self.hold_out} must be at least 0 and below 0.5: valid and test take this share each"
            )
        if self.columns and (len(self.columns) != 2 or len({*self.columns}) != 2):
            raise ConfigError(f"data.columns=[{','.join(self.columns)}] must name two columns, the source first")
        check_at_least("data.seed", self.seed, 0)
        check_at_least("data.max_words", self.max_words, 0)
        check_at_least("data.max_pieces", self.max_pieces, 2)
        for name in ("max_ratio", "max_character_ratio"):
            ratio = getattr(self, name)
            if not (ratio == 0 or ratio >= 1):
                raise ConfigError(f"data.{name}={ratio} would drop every pair: use 1 or more, or 0 for no limit")
        if self.score_column and self.source not in TABLES:
            raise ConfigError(f"data.score_column={self.score_column} needs tables, not data.source={self.source}")
        if self.min_score and not self.score_column:
            raise ConfigError(f"data.min_score={self.min_score} needs data.score_column: name the column of scores")
        if not math.isfinite(self.min_score):
            raise ConfigError(f"data.min_score={self.min_score} must be a finite number")
        check_language("data.source_lang", self.source_lang)
        check_language("data.target_lang", self.target_lang)
        if self.source_lang == self.target_lang:
            raise ConfigError(f"data.source_lang and data.target_lang are both {self.source_lang}: name two languages")
        if len(self.tag.split()) > 1 or self.tag.strip() != self.tag or not self.tag.isprintable():
            raise ConfigError(f"data.tag={self.tag!r} must be one word, such as <bt>")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """The vocabulary, and how text is split into word pieces."""

    model_type: str = "bpe"
    """SentencePiece model: bpe or unigram."""
    vocab_size: int = 37_000
    """Number of word pieces, including the four special ones."""
    joint: bool = True
    """Share one vocabulary between both languages; false trains one per language."""
    normalization: str = "identity"
    """Text normalisation, which is irreversible: identity, nfkc, nmt_nfkc, nfkc_cf or nmt_nfkc_cf."""
    character_coverage: float = 1.0
    """Share of the characters that the vocabulary covers, at least 0.98; the rest becomes the unknown piece."""
    training_sentences: int = 5_000_000
    """Train on a random sample of at most this many sentences; 0 uses all of them."""
    folder: str = ""
    """Folder of prepared data or of a checkpoint whose tokenizer is used as it is; empty trains one."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("tokenizer.model_type", self.model_type, ("bpe", "unigram"))
        check_choice(
            "tokenizer.normalization", self.normalization, ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
        )
        check_between("tokenizer.vocab_size", self.vocab_size, 8, 10_000_000)
        check_at_least("tokenizer.training_sentences", self.training_sentences, 0)
        check_between("tokenizer.character_coverage", self.character_coverage, 0.98, 1)
