"""The settings of the corpora and their tokenizer, and of noise on the training text."""

import math
import re
from collections.abc import Container, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, NamedTuple

from nmt.config.checks import (
    ADJUSTABLE,
    NOT_OF_THE_TEXT,
    OF_ONE_CORPUS,
    check_at_least,
    check_between,
    check_choice,
    check_fraction,
    check_language,
    check_plain_name,
    marked,
    typed,
)
from nmt.config.registry import brings, check_registered
from nmt.errors import ConfigError, nearest

TABLES = ("hub", "files")
"""Sources that read tables and files, in which settings name columns and test sets."""
TREES = "trees"
"""The value of `data.target_lang` for sentences paired with their constituency trees."""
PAIR, SIDE = "pair", "side"
"""The values of `data.drop_overlap`."""
MAX_LINKED_PIECES = 65_535
"""The longest sentence, in word pieces, that can have a word alignment."""
MAIN = "main"
"""The name of the corpus that `data` describes."""
OF_THE_MIXTURE = {"mixture": {}, "temperature": 0.0}
"""Settings of the whole mixture; one of its corpora cannot have them."""
MAX_WEIGHT = 1e6


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
    hold_out: float = field(default=0.0, metadata=OF_ONE_CORPUS)
    """Share of the training pairs held out as `valid`, and again as `test`, if these are empty."""
    hub_dataset: str = "wmt/wmt14"
    """Data set on the Hub, or a local folder in the Hub's layout."""
    hub_config: str = "de-en"
    """Configuration of the Hub data set, such as a language pair."""
    hub_revision: str = "b199e406369ec1b7634206d3ded5ba45de2fe696"
    """Revision of the Hub data set: a full commit, so the text never changes."""
    drop_copies: bool = False
    """Drop training pairs with identical source and target."""
    max_words: int = 250
    """Drop training pairs with more words than this in the source or the target; 0 for no limit."""
    max_ratio: float = 0.0
    """Drop training pairs if one side is longer than the other by more than this factor; 0 for no limit."""
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
    train_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the word alignment of each training pair in Pharaoh format, for training.guided_weight, or
    the name of a data.source that has alignments itself. Empty for none."""
    test_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the true word alignments of test in Pharaoh format, with which `eval` compares the model's."""
    min_language_probability: float = 0.0
    """Drop training pairs if a side has its language with a lower probability, according to py3langid; 0 does not
    check. About 0.1 drops other languages and keeps most sentences, but not those of one or two words, whose language
    is uncertain."""
    weight: float = field(default=1.0, metadata={**NOT_OF_THE_TEXT, **OF_ONE_CORPUS})
    """Weight of this corpus in a mixture: its share of the training tokens, relative to that of the others."""
    mixture: dict[str, Any] = field(default_factory=dict, metadata=NOT_OF_THE_TEXT)
    """Corpora to train on besides this one, by name. Each has `data.*` settings of its own, written like
    data.mixture.crawled.train=[a.en,a.de]; its source, languages, columns and filters default to those of `data`."""
    temperature: float = field(default=0.0, metadata=NOT_OF_THE_TEXT)
    """If not 0, each weight of a mixture is multiplied by the corpus's tokens to the power of 1/temperature."""
    match_numbers: bool = False
    """Drop training pairs whose sides have different numbers, written as digits."""
    drop_overlap: str = ""
    """Drop training pairs that are also in a development or test set, without regard to case and punctuation: pair if
    both sides are those of a pair there, side if one of the sides is a sentence there; empty keeps them."""
    overlap_share: float = 0.0
    """Drop training pairs with a side that contains at least this share of the runs of words of a development or test
    sentence; 0 does not check. A run has eight words. 0.5 drops most copies with changes, 0.01 whatever has one run in
    common."""
    pos_tags: str = "xx"
    """Tags of words in trees: keep, or xx, which replaces all but those of punctuation by XX."""
    drop_web_text: bool = False
    """Drop training pairs with links or tags that differ between the sides or are most of a side, with a side that has
    fewer than 60% letters (tables, codes), or is a menu, a notice about cookies, copyright or scripts, or a call to
    click, in English, German, French or Spanish."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("source", "engine"):
            check_registered(f"data.{name}", getattr(self, name))
        check_plain_name("data.corpus", self.corpus)
        check_at_least("data.max_words", self.max_words, 0)
        check_at_least("data.max_pieces", self.max_pieces, 2)
        check_fraction("data.min_language_probability", self.min_language_probability)
        check_choice("data.pos_tags", self.pos_tags, ("xx", "keep"))
        check_language("data.source_lang", self.source_lang)
        check_language("data.target_lang", self.target_lang)
        if self.source_lang == self.target_lang:
            raise ConfigError(f"data.source_lang and data.target_lang are both {self.source_lang}: name two languages")
        if not 0 <= self.hold_out < 0.5:
            raise ConfigError(
                f"data.hold_out={self.hold_out} must be at least 0 and below 0.5: valid and test take this share each"
            )
        if len(self.tag.split()) > 1 or self.tag.strip() != self.tag or not self.tag.isprintable():
            raise ConfigError(f"data.tag={self.tag!r} must be one word, such as <bt>")
        self._check_tables()
        self._check_filters()
        self._check_alignments()
        self._check_mixture()

    def _check_tables(self) -> None:
        """Check the settings that name columns."""
        if self.columns and (len(self.columns) != 2 or len({*self.columns}) != 2):
            raise ConfigError(f"data.columns=[{','.join(self.columns)}] must name two columns, the source first")
        if self.score_column and self.source not in TABLES:
            raise ConfigError(f"data.score_column={self.score_column} needs tables, not data.source={self.source}")
        if self.min_score and not self.score_column:
            raise ConfigError(f"data.min_score={self.min_score} needs data.score_column: name the column of scores")
        if not math.isfinite(self.min_score):
            raise ConfigError(f"data.min_score={self.min_score} must be a finite number")

    def _check_filters(self) -> None:
        """Check the limits of filters."""
        if not (self.max_ratio == 0 or self.max_ratio >= 1):
            raise ConfigError(
                f"data.max_ratio={self.max_ratio} would drop every pair: use 1 or more, or 0 for no limit"
            )
        if self.drop_overlap:
            check_choice("data.drop_overlap", self.drop_overlap, (PAIR, SIDE))
        if not 0 <= self.overlap_share <= 1:
            raise ConfigError(f"data.overlap_share={self.overlap_share} must be at least 0 and at most 1")

    def _check_alignments(self) -> None:
        """Make sure that the pairs can have word alignments."""
        if self.test_alignments and (not self.test or self.source not in TABLES):
            raise ConfigError("data.test_alignments needs a test set of your own: name it in data.test")
        if not self.train_alignments:
            return
        if not is_text(self.target_lang):
            raise ConfigError(f"data.train_alignments needs text on both sides, not {self.target_lang}: remove it")
        source = self.source
        if "alignments" in brings("data.source", source) and self.train_alignments != source:
            raise ConfigError(f"data.source={source} has its own alignments: set data.train_alignments={source}")
        if self.max_pieces > MAX_LINKED_PIECES:
            raise ConfigError(f"data.train_alignments needs data.max_pieces of at most {MAX_LINKED_PIECES:,}")

    def _check_mixture(self) -> None:
        """Check the corpora of a mixture."""
        if not 0 < self.weight <= MAX_WEIGHT:
            raise ConfigError(
                f"data.weight={self.weight:g} must be above 0 and at most {MAX_WEIGHT:g}: to train without a corpus, "
                "leave it out"
            )
        if not (self.temperature == 0 or 1 <= self.temperature < math.inf):
            raise ConfigError(f"data.temperature={self.temperature:g} must be a number from 1 on, or 0 to ignore sizes")
        if len({is_text(corpus.settings.target_lang) for corpus in corpora_of(self).values()}) > 1:
            raise ConfigError(f"data.mixture: all corpora or none must have target_lang={TREES}")


def is_text(target_lang: str) -> bool:
    """Return whether a target side is text, and not constituency trees."""
    return target_lang != TREES


class Corpus(NamedTuple):
    """A corpus to prepare and to train on."""

    settings: DataConfig
    prefix: str
    """What stands before the names of its settings in messages, such as `data.`."""


def corpora_of(data: DataConfig) -> dict[str, Corpus]:
    """Return each corpus of the training text by name, the main one first."""
    of_all = {"corpus", "max_pieces", *OF_THE_MIXTURE, *marked(data, ADJUSTABLE)}
    known = {each.name: each for each in fields(data) if each.name not in of_all}
    own = {name: _unset(each) for name, each in known.items() if "of_one_corpus" in each.metadata}
    types = {name: each.type for name, each in known.items()}
    found = {MAIN: Corpus(data, "data.")}
    for name, entry in data.mixture.items():
        prefix = f"data.mixture.{name}"
        checked = check_entry(name, entry, types)
        try:
            settings = replace(data, **{**own, **OF_THE_MIXTURE, **checked})
        except ConfigError as error:
            raise ConfigError(f"{prefix}: {error}") from error
        if not settings.train and "text" not in brings("data.source", settings.source):
            raise ConfigError(f"{prefix}.train is empty: name the files of this corpus")
        found[name] = Corpus(settings, f"{prefix}.")
    return found


def check_mixture(data: DataConfig, given: Container[str]) -> None:
    """Refuse settings of a mixture that have no effect; `given` has the names of those that the user gives."""
    for name, usual in {"weight": 1.0, **OF_THE_MIXTURE}.items():
        value = getattr(data, name)
        if not data.mixture and f"data.{name}" in given and value != usual:
            raise ConfigError(
                f"data.{name}={value:g} has no effect without another corpus: name one, such as "
                "data.mixture.more.train=[more.en,more.de]"
            )


def _unset(setting: Field[Any]) -> Any:
    """Return the value of a setting that a corpus does not have: lists of files are empty."""
    return [] if setting.default is MISSING else setting.default


def check_entry(name: str, entry: Any, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a corpus of a mixture with the right types.

    Args:
        name: The name of the corpus.
        entry: Its settings, as the user wrote them.
        types: The type of each setting that a corpus may have, by name.
    """
    prefix = f"data.mixture.{name}"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise ConfigError(f"data.mixture: {name!r} must be a name of letters, digits, _ and -: file names contain it")
    if name == MAIN:
        raise ConfigError(f"{prefix}: {MAIN} is the name of the corpus of data.train: give this one another name")
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{prefix} must be settings, such as {{train: [more.en,more.de]}}")
    for key in entry:
        if key not in types:
            raise ConfigError(f"there is no setting {prefix}.{key}; {nearest(str(key), tuple(types))}")
    return {key: typed(f"{prefix}.{key}", value, types[key]) for key, value in entry.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """The vocabulary, and how text is split into word pieces."""

    model_type: str = "bpe"
    """SentencePiece model: bpe or unigram."""
    vocab_size: int = 37_000
    """Number of word pieces, including the four special ones."""
    joint: bool = True
    """Share one vocabulary between both languages; false trains one per language."""
    folder: str = ""
    """Folder of prepared data or of a checkpoint whose tokenizer is used as it is; empty trains one."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("tokenizer.model_type", self.model_type, ("bpe", "unigram"))
        check_between("tokenizer.vocab_size", self.vocab_size, 8, 10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseConfig:
    """Random changes of the training text, drawn anew in each epoch; all are off at 0."""

    bpe_dropout_source: float = 0.0
    """Probability with which each merge of a source word is left out at each step of BPE (BPE-dropout)."""
    bpe_dropout_target: float = 0.0
    """The same for target words."""
    word_dropout: float = 0.0
    """Share of source words whose pieces are replaced by the unknown piece."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("bpe_dropout_source", "bpe_dropout_target", "word_dropout"):
            check_fraction(f"noise.{name}", getattr(self, name))

    @property
    def any(self) -> bool:
        """Whether the training text is changed."""
        return self != NoiseConfig()
