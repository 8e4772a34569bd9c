"""The settings of word alignments."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import NOT_OF_THE_SEARCH, OF_ONE_CORPUS, ONLY_TORCH, check_at_least, check_choice
from nmt.config.choices import brings, is_text
from nmt.config.schema.corpora import corpora_of
from nmt.config.schema.data import TABLES
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config, DataConfig, DecodingConfig


ALIGNMENT_STATES = ("input", "output")
"""The decoder step that reads a word, and the one that predicts it."""
MAX_LINKED_PIECES = 65_535
"""The longest sentence, in word pieces, that can have a word alignment."""


@dataclass(frozen=True, kw_only=True)
class AlignedData:
    """The word alignments of the training text and of the test text."""

    train_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the word alignment of each training pair in Pharaoh format, for training.guided_weight, or
    the name of a data.source that has alignments itself. Empty for none."""
    test_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the true word alignments of test in Pharaoh format, with which `eval` compares the model's."""

    def __post_init__(self) -> None:
        """Make sure that the pairs can have word alignments."""
        data = cast("DataConfig", self)
        if self.test_alignments and (not data.test or data.source not in TABLES):
            raise ConfigError("data.test_alignments needs a test set of your own: name it in data.test")
        if not self.train_alignments:
            return
        if not is_text(data.target_lang):
            raise ConfigError(f"data.train_alignments needs text on both sides, not {data.target_lang}: remove it")
        source = data.source
        if "alignments" in brings("data.source", source) and self.train_alignments != source:
            raise ConfigError(f"data.source={source} has its own alignments: set data.train_alignments={source}")
        if data.max_pieces > MAX_LINKED_PIECES:
            raise ConfigError(f"data.train_alignments needs data.max_pieces of at most {MAX_LINKED_PIECES:,}")


@dataclass(frozen=True, kw_only=True)
class AlignedDecoding:
    """Whether translations are aligned, and by what."""

    alignments: bool = field(default=False, metadata={**ONLY_TORCH, **NOT_OF_THE_SEARCH})
    """Align the words of each translation with those of its source, which takes one more pass over the translations."""
    alignment_layer: int = field(default=0, metadata=NOT_OF_THE_SEARCH)
    """Decoder layer whose cross-attention aligns, from 1; 0 is the head that training.guided_weight has trained, or the
    mean of the last two layers if there is none."""
    alignment_head: int = field(default=0, metadata=NOT_OF_THE_SEARCH)
    """Head of alignment_layer that aligns, from 1; 0 is the mean of all."""
    alignment_state: str = field(default="output", metadata=NOT_OF_THE_SEARCH)
    """The attention of a word is that of the decoder step that reads it (input) or that predicts it (output)."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("decoding.alignment_state", self.alignment_state, ALIGNMENT_STATES)
        for name in ("alignment_layer", "alignment_head"):
            check_at_least(f"decoding.{name}", getattr(self, name), 0)
        if self.alignment_head and not self.alignment_layer:
            raise ConfigError(f"decoding.alignment_head={self.alignment_head} needs decoding.alignment_layer")


@dataclass(frozen=True, kw_only=True)
class AlignedTranslation:
    """Where the alignments of translations are written."""

    alignments: str = ""
    """File to write with one line per source sentence: the links between its words and those of its best translation,
    in Pharaoh format (0-0 1-2)."""


@dataclass(frozen=True, kw_only=True)
class GuidedTraining:
    """Which attention head learns word alignments."""

    guided_weight: float = 0.0
    """Weight of the loss of one cross-attention head on given word alignments (data.train_alignments), such as 0.05;
    0 for none."""
    guided_layer: int = 0
    """Decoder layer of that head, from 1; 0 is the last but one, or the only one."""
    guided_head: int = 1
    """Head that learns the alignments, from 1."""
    guided_state: str = "input"
    """The decoder step whose attention learns the links of a word: input, which reads the word, or output, which
    predicts it."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("training.guided_weight", self.guided_weight, 0)
        check_at_least("training.guided_layer", self.guided_layer, 0)
        check_at_least("training.guided_head", self.guided_head, 1)
        check_choice("training.guided_state", self.guided_state, ALIGNMENT_STATES)

    def guided_decoder_layer(self, layers: int) -> int:
        """Return the layer with the guided head, from 1, of a decoder with this number of layers."""
        return self.guided_layer or max(1, layers - 1)


def check(config: "Config") -> None:
    """Make sure that a head can be trained on alignments."""
    guided, model = config.of(GuidedTraining), config.model
    if not guided.guided_weight:
        return
    if not any(cast(AlignedData, corpus.settings).train_alignments for corpus in corpora_of(config.data).values()):
        raise ConfigError("training.guided_weight needs word alignments: name their file in data.train_alignments")
    for name, value, limit in (
        ("layer", guided.guided_layer, model.decoder_depth),
        ("head", guided.guided_head, model.heads),
    ):
        if value > limit:
            raise ConfigError(f"training.guided_{name}={value}, but the model has {limit}: choose a lower one")


def uses(config: "Config") -> Iterator[Use]:
    """Say what a guided head needs."""
    if config.of(GuidedTraining).guided_weight:
        needs = (
            *(Capability.CROSS_ATTENTION, Capability.EVERY_LAYER, Capability.ONE_PASS, Capability.WORDS_AS_WRITTEN),
            Capability.UNCOMPILED_MODEL,
        )
        yield Use("training.guided_weight", needs=frozenset(needs))


def with_trained_head(search: "DecodingConfig", run: "Config") -> "DecodingConfig":
    """Let the head that a run has trained align, unless the search names a layer."""
    guided = run.of(GuidedTraining)
    if cast(AlignedDecoding, search).alignment_layer or not guided.guided_weight:
        return search
    trained: dict[str, Any] = {
        "alignment_layer": guided.guided_decoder_layer(run.model.decoder_depth),
        "alignment_head": guided.guided_head,
        "alignment_state": guided.guided_state,
    }
    return replace(search, **trained)
