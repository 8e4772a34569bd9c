"""The settings of the machine and the folders."""

from dataclasses import dataclass

from nmt.config.checks import check_between, check_choice
from nmt.config.choices import CHOICES
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The machine: device, precision, threads and processes."""

    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda (also AMD's GPUs) or mps (Apple's GPU)."""
    precision: str = "auto"
    """auto (bf16 on devices with fast bf16, fp16 on other GPUs if it is fast there, else fp32), fp32, bf16 or fp16."""
    attention: str = "auto"
    """How training attends: auto (short on GPUs with bf16, PyTorch's fused attention on padded blocks on other GPUs in
    fp16, in C on CPUs, else padded), padded, flash, or short (a tile per sentence for batches of at most 128 tokens a
    sentence, otherwise flash)."""
    compile: bool = False
    """Compile the model with torch.compile, which is worthwhile in long runs."""
    cuda_graphs: bool | None = None
    """Record the forward and backward passes of each size of micro-batch as a CUDA graph, which the GPU replays without
    waiting for the processor; null is true on GPUs of NVIDIA, unless runtime.compile is true."""
    threads: int = 0
    """CPU threads per process; 0 divides the cores between the processes on this machine. Efficiency cores and the
    second threads of cores are not counted, and neither is more than the quota of a container."""
    parallel: int = 0
    """Micro-batches that a process trains in parallel on a CPU, each with its share of the threads; 0 is as many as the
    threads and the batch allow. Several processes and GPUs train one at a time."""
    kernels: bool = True
    """Compute with operations of this package, which are faster, and equal but for rounding: on a CPU in C, if a C
    compiler is installed, and on GPUs with bf16 in Triton, if that is installed."""
    shard: str = "none"
    """What several processes divide among them."""
    workers: int = 0
    """Processes that prepare data; 0 is one per core."""
    timeout_minutes: float = 10.0
    """End training on several devices if one process does not respond to the others for this long."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("runtime.device", self.device, ("auto", "cpu", "cuda", "mps"))
        check_choice("runtime.precision", self.precision, ("auto", "fp32", "bf16", "fp16"))
        check_choice("runtime.attention", self.attention, ("auto", "padded", "flash", "short"))
        check_choice("runtime.shard", self.shard, CHOICES["runtime.shard"])
        check_between("runtime.threads", self.threads, 0, 1024)
        check_between("runtime.parallel", self.parallel, 0, 1024)
        check_between("runtime.workers", self.workers, 0, 1024)
        if not 0 < self.timeout_minutes <= 1_000_000:
            raise ConfigError(f"runtime.timeout_minutes={self.timeout_minutes} must be above 0, and at most 1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsConfig:
    """Folders, relative to the folder in which the command runs, or addresses such as s3://bucket/folder."""

    data: str = "data"
    """Prepared corpora."""
    outputs: str = "outputs"
    """Runs."""
