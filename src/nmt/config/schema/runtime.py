"""The settings of the machine, the folders and the experiment trackers."""

from dataclasses import dataclass

from nmt.config.checks import check_between, check_choice
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The machine: device, precision, threads and processes."""

    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda (also AMD's GPUs) or mps (Apple's GPU)."""
    precision: str = "auto"
    """auto (bf16 on devices with fast bf16), fp32 or bf16."""
    compile: bool = False
    """Compile the model with torch.compile, which is worthwhile in long runs."""
    threads: int = 0
    """CPU threads per process; 0 divides the cores between the processes on this machine."""
    workers: int = 0
    """Processes that prepare data; 0 is one per core."""
    timeout_minutes: float = 10.0
    """End training on several devices if one process does not respond to the others for this long."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("runtime.device", self.device, ("auto", "cpu", "cuda", "mps"))
        check_choice("runtime.precision", self.precision, ("auto", "fp32", "bf16"))
        check_between("runtime.threads", self.threads, 0, 1024)
        check_between("runtime.workers", self.workers, 0, 1024)
        if not 0 < self.timeout_minutes <= 1_000_000:
            raise ConfigError(f"runtime.timeout_minutes={self.timeout_minutes} must be above 0, and at most 1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingConfig:
    """Experiment trackers; the run always writes its own metrics.jsonl."""

    wandb: str = "disabled"
    """Weights & Biases: disabled, offline (needs no account) or online."""
    project: str = "nmt"
    """Project on Weights & Biases."""
    entity: str = ""
    """Account or team on Weights & Biases; empty is your own."""
    artifact: bool = False
    """Upload the checkpoint that eval scores to Weights & Biases."""
    tensorboard: bool = False
    """Write TensorBoard curves into the run's folder; needs the package tensorboard."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("tracking.wandb", self.wandb, ("disabled", "offline", "online"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsConfig:
    """Folders, relative to the folder in which the command runs."""

    data: str = "data"
    """Prepared corpora."""
    outputs: str = "outputs"
    """Runs."""
