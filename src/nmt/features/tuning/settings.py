"""The settings of `tune`, and whether training takes what it measured."""

from dataclasses import dataclass, field

from nmt.config.checks import check_between, check_choice


@dataclass(frozen=True, kw_only=True)
class TunedRuntime:
    """Whether training takes what `tune` measured."""

    tuned: str = "auto"
    """Settings that `nmt tune` measured, for those that are left open: auto (take them if they were measured on this
    machine for this model and batch), required (end with an error if there are none) or off."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_choice("runtime.tuned", self.tuned, ("auto", "required", "off"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneConfig:
    """What `tune` measures, and for how long."""

    choices: list[str] = field(default_factory=list)
    """Settings to choose, such as runtime.threads; empty is all that the run leaves open on this device."""
    seconds: float = 0.0
    """Most seconds of steps per setting, besides the time to warm up and to compile; 0 is 120 on a GPU, 30 on a CPU."""
    devices: int = 0
    """Devices that the run will use, each with its share of the batch; 0 is all GPUs of this machine, or one CPU."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_between("tune.seconds", self.seconds, 0, 3600)
        check_between("tune.devices", self.devices, 0, 1_000_000)
