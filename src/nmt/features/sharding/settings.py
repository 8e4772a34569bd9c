"""What divided weights need of the other settings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config

NEEDS = frozenset({Capability.EVERY_LAYER, Capability.UNCOMPILED_MODEL})


def check(config: "Config") -> None:
    """Refuse optimizers that need whole matrices, or whose state is divided in another way."""
    if config.runtime.shard != "weights":
        return
    training = config.training
    if training.optimizer != "adam":
        raise ConfigError(
            f"runtime.shard=weights cannot be used with training.optimizer={training.optimizer}, which may need whole "
            "matrices: set it to adam, or leave runtime.shard out"
        )
    if training.shard_optimizer:
        raise ConfigError(
            "runtime.shard=weights divides Adam's averages, too: leave training.shard_optimizer out, or set "
            "runtime.shard=none to divide only the averages"
        )


def uses(config: "Config") -> Iterator[Use]:
    """Say that all processes run every layer."""
    if config.runtime.shard == "weights":
        yield Use("runtime.shard=weights", NEEDS)
