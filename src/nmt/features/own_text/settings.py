"""Whether settings are derived, for how many minutes, and which of them keep their values."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.config.advice import advised_settings
from nmt.config.capabilities import Capability, is_taken
from nmt.config.checks import ADJUSTABLE, check_between
from nmt.config.choices import is_text
from nmt.config.schema.corpora import corpora_of
from nmt.errors import ConfigError, nearest

if TYPE_CHECKING:
    from nmt.config.schema import Config

MAX_MINUTES = 1_000_000
LANGUAGES = ("data.source_lang", "data.target_lang")
HOLD_OUT, VOCABULARY = "data.hold_out", "tokenizer.vocab_size"
OF_DATA = (*LANGUAGES, HOLD_OUT, VOCABULARY)
"""Settings that are derived before the text is prepared."""
SHAPE = ("model.layers", "model.d_model", "model.d_ff", "model.heads")
"""Settings that are derived together or not at all."""
DERIVED = (
    *OF_DATA,
    *SHAPE,
    "model.dropout",
    "training.batch_tokens",
    "training.schedule",
    "training.steps",
    "training.weight_decay",
    "training.warmup_steps",
    "training.valid_every",
    "training.save_every",
    "training.patience",
)
"""Settings of the core that are derived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnText:
    """Settings that follow from the text and the machine."""

    derive: bool = False
    """Derive the languages from the names of the files, and the share of held-out text, the size of the vocabulary,
    width and dropout of the model, BPE-dropout, batch, steps, schedule and weight decay from the size of the text, the
    minutes and the speed of this machine, unless you give them. A run that has begun keeps its values."""
    minutes: float = 0.0
    """Minutes of training steps to plan for; 0 for those of training.max_training_minutes, which end the run whatever
    the speed, or, if these are 0 too, for as many as suit the text, at most an hour."""
    keep: list[str] = field(default_factory=list, metadata=ADJUSTABLE)
    """Settings that are not derived; those that you give are among them."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_between("own.minutes", self.minutes, 0, MAX_MINUTES)
        derived = derived_settings()
        if unknown := [name for name in self.keep if name not in derived]:
            raise ConfigError(f"own.keep names {unknown[0]}, which is not derived; {nearest(unknown[0], derived)}")


def derived_settings() -> tuple[str, ...]:
    """Return all settings that are derived, with those for which features advise values."""
    return (*DERIVED, *advised_settings())


def reason_not_to_derive(config: "Config") -> str:
    """Return why nothing can be derived from the text of a run; empty if it can."""
    if len(corpora_of(config.data)) > 1:
        return "the training text consists of several corpora"
    if not is_text(config.data.target_lang):
        return f"the target side is {config.data.target_lang}"
    if is_taken(config, Capability.OWN_TOKENIZER):
        return "the run begins from another model"
    return ""
