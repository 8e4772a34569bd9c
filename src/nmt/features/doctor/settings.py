"""The settings of `doctor`."""

from dataclasses import dataclass, field

from nmt.config.checks import check_between, check_choice

MODELS = ("tiny", "small", "base", "big")
"""The models that can be timed, from the smallest to the paper's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorConfig:
    """What `doctor` measures."""

    gpu: bool = False
    """Measure the GPUs: are results correct, how fast is training compared with the estimate, which settings suit them?
    With runtime.device=cpu, rehearse that on the CPU."""
    minutes: float = 10.0
    """Most minutes for that; what has no time left is recorded as a failure."""
    models: list[str] = field(default_factory=lambda: ["base", "big"])
    """Models to time: tiny, small, base and big. Settings are tuned for the first one, which also trains longest."""
    run_steps: int = 200
    """Steps that the first model trains on one device, and then on all of them."""
    timed_steps: int = 20
    """Steps of each model that are timed."""
    devices: int = 0
    """Devices that train together; 0 is all GPUs, or one CPU."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_between("doctor.minutes", self.minutes, 0, 1440)
        check_between("doctor.run_steps", self.run_steps, 1, 1_000_000)
        check_between("doctor.timed_steps", self.timed_steps, 1, 10_000)
        check_between("doctor.devices", self.devices, 0, 64)
        check_between("the number of doctor.models", len(self.models), 1, len(MODELS))
        for model in self.models:
            check_choice("doctor.models", model, MODELS)
