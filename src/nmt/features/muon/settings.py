"""The settings of Muon."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import check_above_zero, only_with
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class MuonTraining:
    """How Muon updates the matrices."""

    muon_rate: float = field(default=1.0, metadata=only_with("optimizer", "muon"))
    """Muon's learning rate, as a fraction of training.learning_rate, which is Adam's."""

    def __post_init__(self) -> None:
        """Check the values, and that devices do not divide the state."""
        check_above_zero("training.muon_rate", self.muon_rate)
        training = cast("TrainingConfig", self)
        if training.optimizer == "muon" and training.shard_optimizer:
            raise ConfigError("training.shard_optimizer=true divides only Adam's averages: set it to false for muon")
