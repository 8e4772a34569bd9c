"""The setting of freezing."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class FrozenTraining:
    """Which weights training does not change."""

    freeze: list[str] = field(default_factory=list)
    """Weights that training does not change: encoder, decoder, embeddings, or names in which * stands for any text."""
