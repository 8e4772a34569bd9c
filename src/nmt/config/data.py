"""The settings of the corpora and their tokenizer, and of noise on the training text."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Annotated, Any, NamedTuple

from nmt.config.checks import (
    ADJUSTABLE,
    Amount,
    Count,
    Group,
    Share,
    check_language,
    check_plain_name,
    one_of,
    within,
)
from nmt.errors import ConfigError, nearest

TABLES = ("hub", "files")
"""Sources that read tables and files, in which settings name columns and test sets."""
TREES = "trees"
"""The value of `data.target_lang` for sentences paired with their constituency trees."""
SIDE = "side"
"""The value of `data.drop_overlap` that drops most."""
MAX_LINKED_PIECES = 65_535
"""The longest sentence, in word pieces, that can have a word alignment."""
MAIN = "main"
"""The name of the corpus that `data` describes."""
OF_THE_MIXTURE = {"mixture": {}, "temperature": 0.0}
"""Settings of the whole mixture."""
GENERATED = "demo"
"""The source of text that is generated, with its alignments: no settings name it."""
NOT_OF_THE_TEXT = ("corpus", "engine", "weight", *OF_THE_MIXTURE)
"""Settings on which the text and its tokens do not depend."""
OF_ONE_CORPUS = ("train", "valid", "test", "hold_out", "tag", "train_alignments", "test_alignments", "weight")
"""Settings that other corpora do not take from the main one."""
OF_ALL_CORPORA = ("corpus", "engine", "max_pieces", *OF_THE_MIXTURE)
"""Settings that one corpus of a mixture cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig(Group):
    """The source of the parallel text, and which pairs are kept."""

    corpus: Annotated[str, check_plain_name] = "wmt14_en_de"
    """Name of the prepared data, which is stored in `<paths.data>/<corpus>/`."""
    source: str = "hub"
    """Kind of source."""
    engine: Annotated[str, one_of("processes", "ray")] = field(default="processes", metadata=ADJUSTABLE)
    """Where the text is filtered and encoded, which does not change it: processes of this machine, or a Ray cluster."""
    source_lang: Annotated[str, check_language] = "en"
    """Language to translate from."""
    target_lang: Annotated[str, check_language] = "de"
    """Language to translate into, or another kind of target side."""
    train: list[str] = field(default_factory=lambda: ["train"])
    """Training text: a Hub split, or files (the source language first, or one file with both)."""
    valid: list[str] = field(default_factory=lambda: ["validation"])
    """Validation text, like `test`."""
    test: list[str] = field(default_factory=lambda: ["test"])
    """Test text, like `train`; or text files with further references after the first two."""
    columns: list[str] = field(default_factory=list)
    """Columns of source and target in tables that do not name them after the languages."""
    hold_out: Annotated[float, within(at_least=0, below=0.5)] = 0.0
    """Share of the training pairs held out as `valid`, and again as `test`, if these are empty."""
    hub_dataset: str = "wmt/wmt14"
    """Data set on the Hub."""
    hub_config: str = "de-en"
    """Configuration of the Hub data set, such as a language pair."""
    hub_revision: str = "b199e406369ec1b7634206d3ded5ba45de2fe696"
    """Revision of the Hub data set: a full commit, so the text never changes."""
    drop_copies: bool = False
    """Drop training pairs with identical source and target."""
    max_words: Count = 250
    """Drop training pairs with more words than this in the source or the target; 0 for no limit."""
    max_ratio: Amount = 0.0
    """Drop training pairs if one side is longer than the other by more than this factor; 0 for no limit."""
    deduplicate: bool = False
    """Drop training pairs that repeat an earlier one; case, white space, punctuation and digits do not count."""
    max_pieces: Annotated[int, within(at_least=2)] = 256
    """Drop training pairs with more word pieces than this in the source or the target."""
    tag: str = ""
    """A word put before each source sentence, such as @de@ for the target language; it gets an id of its own."""
    train_alignments: str = ""
    """File with the word alignment of each training pair in Pharaoh format, for training.guided_weight, or
    the name of a data.source that has alignments itself. Empty for none."""
    test_alignments: str = ""
    """File with the true word alignments of test in Pharaoh format, with which `eval` compares the model's."""
    min_language_probability: Share = 0.0
    """Drop training pairs if a side has its language with a lower probability, according to py3langid; 0 does not
    check. About 0.1 drops other languages and keeps most sentences, but not those of one or two words, whose language
    is uncertain."""
    weight: Annotated[float, within(above=0, at_most=1_000_000)] = 1.0
    """Weight of this corpus in a mixture: its share of the training tokens, relative to that of the others."""
    mixture: dict[str, Any] = field(default_factory=dict)
    """Corpora to train on besides this one, by name. Each has `data.*` settings of its own, written like
    data.mixture.crawled.train=[a.en,a.de]; its source, languages, columns and filters default to those of `data`."""
    temperature: float = 0.0
    """If not 0, each weight of a mixture is multiplied by the corpus's tokens to the power of 1/temperature."""
    drop_overlap: Annotated[str, one_of("", "pair", SIDE)] = ""
    """Drop training pairs that are also in a development or test set, without regard to case and punctuation: pair if
    both sides are those of a pair there, side if one of the sides is a sentence there; empty keeps them."""
    pos_tags: Annotated[str, one_of("xx", "keep")] = "xx"
    """Tags of words in trees: keep, or xx, which replaces all but those of punctuation by XX."""

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.source_lang, self.target_lang

    def _check(self) -> None:
        if self.source_lang == self.target_lang:
            raise ConfigError(f"data.source_lang and data.target_lang are both {self.source_lang}: name two languages")
        if len(self.tag.split()) > 1 or self.tag.strip() != self.tag or not self.tag.isprintable():
            raise ConfigError(f"data.tag={self.tag!r} must be one word, such as @bt@")
        if self.columns and (len(self.columns) != 2 or len({*self.columns}) != 2):
            raise ConfigError(f"data.columns=[{','.join(self.columns)}] must name two columns, the source first")
        if self.temperature != 0 and not self.temperature >= 1:
            raise ConfigError(f"data.temperature={self.temperature:g} must be a number from 1 on, or 0 to ignore sizes")
        if len({is_text(corpus.settings.target_lang) for corpus in corpora_of(self).values()}) > 1:
            raise ConfigError(f"data.mixture: all corpora or none must have target_lang={TREES}")
        self._check_alignments()

    def _check_alignments(self) -> None:
        """Make sure that the pairs can have word alignments."""
        if self.test_alignments and (not self.test or self.source not in TABLES):
            raise ConfigError("data.test_alignments needs a test set of your own: name it in data.test")
        if not self.train_alignments:
            return
        if not is_text(self.target_lang):
            raise ConfigError(f"data.train_alignments needs text on both sides, not {self.target_lang}: remove it")
        if self.source == GENERATED != self.train_alignments:
            raise ConfigError(f"data.source={GENERATED} has its own alignments: set data.train_alignments={GENERATED}")
        if self.max_pieces > MAX_LINKED_PIECES:
            raise ConfigError(f"data.train_alignments needs data.max_pieces of at most {MAX_LINKED_PIECES:,}")


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
    known = {each.name: each for each in fields(data) if each.name not in OF_ALL_CORPORA}
    own: dict[str, Any] = {
        name: [] if known[name].default is MISSING else known[name].default for name in OF_ONE_CORPUS
    }
    found = {MAIN: Corpus(data, "data.")}
    for name, entry in data.mixture.items():
        prefix = f"data.mixture.{name}"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name) or name == MAIN:
            raise ConfigError(f"data.mixture: {name!r} must be a name of letters, digits, _ and -, and not {MAIN}")
        if not isinstance(entry, Mapping):
            raise ConfigError(f"{prefix} must be settings, such as {{train: [more.en,more.de]}}")
        if unknown := [key for key in entry if key not in known]:
            raise ConfigError(f"there is no setting {prefix}.{unknown[0]}; {nearest(str(unknown[0]), known)}")
        try:
            settings = replace(data, **{**own, **OF_THE_MIXTURE, **entry})
        except ConfigError as error:
            raise ConfigError(str(error).replace("data.", f"{prefix}.")) from error
        if not settings.train and settings.source != GENERATED:
            raise ConfigError(f"{prefix}.train is empty: name the files of this corpus")
        found[name] = Corpus(settings, f"{prefix}.")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig(Group):
    """The vocabulary, and how text is split into word pieces."""

    model_type: Annotated[str, one_of("bpe", "unigram")] = "bpe"
    """SentencePiece model: bpe or unigram."""
    vocab_size: Annotated[int, within(at_least=8, at_most=10_000_000)] = 37_000
    """Number of word pieces, including the four special ones."""
    joint: bool = True
    """Share one vocabulary between both languages; false trains one per language."""
    folder: str = ""
    """Folder of prepared data or of a checkpoint whose tokenizer is used as it is; empty trains one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseConfig(Group):
    """Random changes of the training text, drawn anew in each epoch."""

    bpe_dropout: Share = 0.0
    """Probability with which each merge of a word is left out at each step of BPE (BPE-dropout); 0 for none."""
