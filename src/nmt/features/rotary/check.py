"""The check of settings for rotary positions."""

from typing import TYPE_CHECKING

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config


def check(config: "Config") -> None:
    """Make sure that the coordinates of a head are pairs."""
    model = config.model
    if model.positions == "rotary" and model.key_size % 2:
        raise ConfigError(f"model.d_k={model.key_size} must be even for rotary positions")
