"""The settings of the services."""

from dataclasses import dataclass, field

from nmt.config.checks import check_choice, only_with


@dataclass(frozen=True, kw_only=True)
class TrackingConfig:
    """Experiment trackers; the run always writes its own metrics.jsonl."""

    wandb: str = "disabled"
    """Weights & Biases: disabled, offline (needs no account) or online."""
    project: str = "nmt"
    """Project on Weights & Biases."""
    entity: str = ""
    """Account or team on Weights & Biases; empty is your own."""
    artifact: bool = field(default=False, metadata=only_with("wandb", "offline", "online"))
    """Upload the checkpoint that eval scores to Weights & Biases."""
    tensorboard: bool = False
    """Write TensorBoard curves into the run's folder; needs the package tensorboard."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("tracking.wandb", self.wandb, ("disabled", "offline", "online"))


TRANSLATION_COLUMNS = ("source", "translation", "reference")
"""The columns of the table of translations."""
