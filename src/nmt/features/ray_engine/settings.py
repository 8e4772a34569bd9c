"""The address of the cluster."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import ADJUSTABLE, NOT_OF_THE_TEXT
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class RayData:
    """Where Ray is."""

    ray_address: str = field(default="", metadata={**NOT_OF_THE_TEXT, **ADJUSTABLE})
    """Address of the Ray cluster for data.engine=ray, such as auto, 10.0.0.1:6379 or ray://10.0.0.1:10001; empty starts
    one on this machine with runtime.workers processes."""


def check(config: "Config") -> None:
    """Refuse an address that is not used."""
    address = cast(RayData, config.data).ray_address
    if address and config.data.engine != "ray":
        raise ConfigError(f"data.ray_address={address} has no effect with data.engine={config.data.engine}: choose ray")
