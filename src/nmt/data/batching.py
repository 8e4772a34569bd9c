"""What decides how the text is divided into global batches."""

from dataclasses import dataclass

from nmt.config.training import TrainingConfig


@dataclass(frozen=True, slots=True)
class Batching:
    """How the text is divided into global batches."""

    tokens: int
    """The largest number of source tokens, and of target tokens, in a global batch."""
    seed: int
    """The seed of the order of the pairs and of the batches."""
    by_length: bool = True
    """Whether the pairs of a global batch have similar lengths."""

    @classmethod
    def of(cls, training: TrainingConfig, seed: int) -> "Batching":
        """Return what the settings of training ask for."""
        return cls(training.batch_tokens, seed, training.group_by_length)
