"""The processor: its name, its instructions, and how many of its cores this process may use."""

import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

from nmt.compute.control_group import lines_of, processor_quotas

SYSTEM = Path("/sys")
"""Where Linux describes the machine."""
MIN_CAPACITY = 0.7
"""A core with less of the fastest core's capacity than this would let the others wait at the end of each operation."""

INSTRUCTIONS = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_vnni": "VNNI",
    "avx512_bf16": "AVX-512 bf16",
    "amx_bf16": "AMX bf16",
    "asimd": "NEON",
    "sve": "SVE",
    "bf16": "bf16",
}
"""Names of the instructions that decide about the speed of matrix products, by Linux's names for them."""


def usable_cores() -> int:
    """Return the number of cores this process may keep busy: those it may run on, or what its container may use."""
    return min(len(_usable_numbers()), _whole_cores_of_quota())


def computing_threads() -> int:
    """Return the number of threads that share a matrix product: one per usable core that is as fast as the fastest.

    Two threads of one core share its arithmetic units, and an operation takes as long as its slowest thread.
    """
    fast = _fast_cores_of_macos() if platform.system() == "Darwin" else len(_one_per_core(_fast(_usable_numbers())))
    return max(1, min(fast or usable_cores(), usable_cores()))


def bind_near(pci_address: str) -> None:
    """Let this process run only on the cores that are near a device, if Linux says which ones these are."""
    near = _numbers(" ".join(lines_of(SYSTEM / "bus" / "pci" / "devices" / pci_address / "local_cpulist")))
    if hasattr(os, "sched_setaffinity") and near & _usable_numbers():
        os.sched_setaffinity(0, near & _usable_numbers())


def cpu_model() -> str:
    """Return the name of the processor."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def cpu_vendor() -> str:
    """Return the name that an x86 processor has for its maker; empty for others."""
    return _cpuinfo("vendor_id")


def cpu_is_by_amd() -> bool:
    """Return whether the processor is AMD's, or of a maker that builds AMD's."""
    return cpu_vendor() in ("AuthenticAMD", "HygonGenuine")


def cpu_features() -> str:
    """Return the name of the processor and its instructions, as far as the system tells."""
    return f"{cpu_model()}: {_cpuinfo('flags') or _cpuinfo('Features')}"


def cpu_description() -> str:
    """Return the name of the processor, its widest instructions and the sizes of its caches."""
    flags = {*(_cpuinfo("flags") or _cpuinfo("Features")).split()}
    instructions = [name for flag, name in INSTRUCTIONS.items() if flag in flags]
    caches = SYSTEM / "devices" / "system" / "cpu" / "cpu0" / "cache"
    sizes = [
        f"L{' '.join(lines_of(each / 'level'))} {' '.join(lines_of(each / 'size'))}"
        for each in sorted(caches.glob("index*"))
        if lines_of(each / "type") != ["Instruction"] and lines_of(each / "size")
    ]
    return ", ".join([cpu_model(), *instructions, *sizes])


def _usable_numbers() -> set[int]:
    """Return the numbers of the logical processors this process may run on; macOS only tells how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _whole_cores_of_quota() -> int:
    """Return the quota of processor time of the container, in whole cores; at least 1.

    It is rounded down: threads beyond it would wait for the next period together with the others.
    """
    return max(1, int(min(processor_quotas(), default=os.cpu_count() or 1)))


def _fast(numbers: set[int]) -> set[int]:
    """Leave out efficiency cores."""
    performance = _numbers(" ".join(lines_of(SYSTEM / "devices" / "cpu_core" / "cpus")))  # Intel's name for the others
    if performance & numbers:
        return performance & numbers
    capacities = {each: " ".join(lines_of(_folder(each) / "cpu_capacity")) for each in numbers}
    if not all(map(str.isdigit, capacities.values())):
        return numbers
    fastest = max(map(int, capacities.values()))
    return {each for each, capacity in capacities.items() if int(capacity) >= MIN_CAPACITY * fastest}


def _one_per_core(numbers: Iterable[int]) -> set[int]:
    """Return the first of the logical processors of each core."""
    cores = {
        each: _numbers(" ".join(lines_of(_folder(each) / "topology" / "thread_siblings_list"))) for each in numbers
    }
    return {min({each, *siblings} & cores.keys()) for each, siblings in cores.items()}


def _folder(number: int) -> Path:
    return SYSTEM / "devices" / "system" / "cpu" / f"cpu{number}"


def _numbers(text: str) -> set[int]:
    """Return the numbers of a list such as 0-3,8."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _fast_cores_of_macos() -> int:
    """Return the number of performance cores of a Mac; 0 if it does not tell."""
    command = ["sysctl", "-n", "hw.perflevel0.physicalcpu"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
        return int(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def _cpuinfo(key: str) -> str:
    """Return the first value of a key in /proc/cpuinfo; empty if there is none."""
    lines = (line for line in lines_of(Path("/proc/cpuinfo")) if line.startswith(key))
    return next(lines, "").partition(":")[2].strip()
