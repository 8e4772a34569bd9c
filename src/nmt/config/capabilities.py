"""What the settings of a run need, and what they take away: two features that do not fit need not know each other.

A setting in use says what it needs of a run, such as a model with cross-attention. Another one says what it takes away.
If something is both needed and taken away, the error names the two settings.
"""

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from nmt.discovery import features, imported
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema.config import Config


class Capability(Enum):
    """What a run offers as long as no setting takes it away; the text says what it is like without it."""

    CROSS_ATTENTION = "has no cross-attention"
    EVERY_LAYER = "may skip the layer"
    OWN_LOSS = "computes the loss in its own way"
    ONE_PASS = "computes every batch twice"
    WORDS_AS_WRITTEN = "changes the words"
    UNCOMPILED_MODEL = "compiles the model"
    OWN_TOKENIZER = "may have the tokenizer of another model"


class Use(NamedTuple):
    """A setting in use."""

    setting: str
    """As a message names it, such as `runtime.compile=true`."""
    needs: frozenset[Capability] = frozenset()
    takes: frozenset[Capability] = frozenset()


def check_capabilities(config: "Config") -> None:
    """Refuse settings of which one takes away what another one needs."""
    uses = list(_uses(config))
    for one in uses:
        for other in uses:
            if one is not other and (missing := one.needs & other.takes):
                reason = min(missing, key=lambda each: each.name).value
                raise ConfigError(
                    f"{one.setting} cannot be used with {other.setting}, which {reason}: remove one of the two"
                )


def is_taken(config: "Config", capability: Capability) -> bool:
    """Return whether a setting in use takes something away, for settings that can do without it."""
    return any(capability in use.takes for use in _uses(config))


def is_needed(config: "Config", capability: Capability) -> bool:
    """Return whether a setting in use needs something, for settings that may take it away."""
    return any(capability in use.needs for use in _uses(config))


def _uses(config: "Config") -> Iterator[Use]:
    """Yield the settings in use that need something or take something away."""
    if config.runtime.compile:
        yield Use("runtime.compile=true", takes=frozenset({Capability.UNCOMPILED_MODEL}))
    for feature in features().values():
        if feature.uses:
            yield from imported(feature.uses)(config)
