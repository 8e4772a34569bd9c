"""The settings of word alignments."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import OF_ONE_CORPUS, check_at_least, check_choice
from nmt.config.choices import is_text
from nmt.config.schema.corpora import corpora_of
from nmt.config.schema.decoding import ALIGNMENT_STATES
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config, DataConfig, DecodingConfig


MAX_LINKED_PIECES = 65_535
"""The longest sentence, in word pieces, that can have a word alignment."""
DEMO_ALIGNMENTS = "demo"
"""The value of `data.train_alignments` that takes the true links of the demo's grammar."""


@dataclass(frozen=True, kw_only=True)
class AlignedData:
    """The word alignments of the training text."""

    train_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the word alignment of each training pair in Pharaoh format, for training.guided_weight; demo takes the
    true ones of data.source=demo. Empty for none."""

    def __post_init__(self) -> None:
        """Make sure that the training pairs can have word alignments."""
        data = cast("DataConfig", self)
        if not self.train_alignments:
            return
        if not is_text(data.target_lang):
            raise ConfigError(f"data.train_alignments needs text on both sides, not {data.target_lang}: remove it")
        if data.source == "demo" and self.train_alignments != DEMO_ALIGNMENTS:
            raise ConfigError(f"data.source=demo has its own alignments: set data.train_alignments={DEMO_ALIGNMENTS}")
        if data.max_pieces > MAX_LINKED_PIECES:
            raise ConfigError(f"data.train_alignments needs data.max_pieces of at most {MAX_LINKED_PIECES:,}")


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
    if search.alignment_layer or not guided.guided_weight:
        return search
    return replace(
        search,
        alignment_layer=guided.guided_decoder_layer(run.model.decoder_depth),
        alignment_head=guided.guided_head,
        alignment_state=guided.guided_state,
    )
