"""The processor and the memory: their names and sizes, and what of them this process or its container may use."""

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEM, PROCESS = Path("/sys"), Path("/proc/self")
"""Where Linux describes the machine, and this process."""
MIN_CAPACITY = 0.7
"""A core with less of the fastest core's capacity than this would let the others wait at the end of each operation."""

INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
"""Linux's names of the instructions that decide about the speed of matrix products."""


def usable_cores() -> int:
    """Return the number of cores this process may keep busy: those it may run on, or what its container may use.

    A quota of processor time is rounded down: threads beyond it would wait for the next period with the others.
    """
    quota = min((limit / period for limit, period in _quotas()), default=os.cpu_count() or 1)
    return min(len(_usable_numbers()), max(1, int(quota)))


def computing_threads() -> int:
    """Return the number of threads that share a matrix product: one per usable core that is as fast as the fastest.

    Two threads of one core share its arithmetic units, and an operation takes as long as its slowest thread.
    """
    fast = _fast_cores_of_macos() if platform.system() == "Darwin" else len(_one_per_core(_fast(_usable_numbers())))
    return max(1, min(fast or usable_cores(), usable_cores()))


def usable_memory() -> int:
    """Return the memory of the machine in bytes, or what its container may use of it."""
    limits = [words[0] for words in (*_limits("memory.max"), _words(_cgroup() / "memory" / "memory.limit_in_bytes"))]
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *(int(limit) for limit in limits if limit.isdigit())])


def cpu_model() -> str:
    """Return the name of the processor."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def cpu_is_by_amd() -> bool:
    """Return whether the processor is AMD's, or of a maker that builds AMD's."""
    return _cpuinfo("vendor_id") in ("AuthenticAMD", "HygonGenuine")


def cpu_features() -> str:
    """Return the name of the processor and its instructions, as far as the system tells."""
    return f"{cpu_model()}: {_cpuinfo('flags') or _cpuinfo('Features')}"


def cpu_description() -> str:
    """Return the name of the processor, its widest instructions and the sizes of its caches."""
    flags = cpu_features().split()
    instructions = [each for each in INSTRUCTIONS if each in flags]
    caches = sorted((SYSTEM / "devices/system/cpu/cpu0/cache").glob("index*"))
    caches = [each for each in caches if _text(each / "type") != "Instruction" and _text(each / "size")]
    sizes = [f"L{_text(each / 'level')} {_text(each / 'size')}" for each in caches]
    return ", ".join([cpu_model(), *instructions, *sizes])


def _quotas() -> Iterator[tuple[int, int]]:
    """Yield the quotas of processor time with their periods, of both versions of control groups."""
    first_version = [_text(_cgroup() / "cpu" / f"cpu.cfs_{name}_us") or "max" for name in ("quota", "period")]
    for words in (*_limits("cpu.max"), first_version):
        if len(words) == 2 and all(map(str.isdigit, words)):
            yield int(words[0]), int(words[1])


def _limits(name: str) -> Iterator[list[str]]:
    """Yield the words of the files of a name, from the process's own control group to the outermost."""
    own = [line.rpartition(":")[2].strip("/") for line in _text(PROCESS / "cgroup").splitlines() if line[:3] == "0::"]
    for group in own or [""]:
        for folder in (_cgroup() / group, *(_cgroup() / group).parents):
            if folder.is_relative_to(_cgroup()):
                yield _words(folder / name)


def _cgroup() -> Path:
    return SYSTEM / "fs" / "cgroup"


def _usable_numbers() -> set[int]:
    """Return the numbers of the logical processors this process may run on; macOS only tells how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _fast(numbers: set[int]) -> set[int]:
    """Leave out efficiency cores."""
    performance = _numbers(_text(SYSTEM / "devices" / "cpu_core" / "cpus"))  # Intel's name for the others
    if performance & numbers:
        return performance & numbers
    capacities = {each: _text(_folder(each) / "cpu_capacity") for each in numbers}
    if not all(map(str.isdigit, capacities.values())):
        return numbers
    fastest = max(map(int, capacities.values()))
    return {each for each, capacity in capacities.items() if int(capacity) >= MIN_CAPACITY * fastest}


def _one_per_core(numbers: Iterable[int]) -> set[int]:
    """Return the first of the logical processors of each core."""
    cores = {each: _numbers(_text(_folder(each) / "topology" / "thread_siblings_list")) for each in numbers}
    return {min({each, *siblings} & cores.keys()) for each, siblings in cores.items()}


def _folder(number: int) -> Path:
    return SYSTEM / "devices" / "system" / "cpu" / f"cpu{number}"


def _numbers(text: str) -> set[int]:
    """Return the numbers of a list such as 0-3,8."""
    ranges = [part.partition("-")[::2] for part in text.split(",") if part]
    return {number for first, last in ranges for number in range(int(first), int(last or first) + 1)}


def _fast_cores_of_macos() -> int:
    """Return the number of performance cores of a Mac; 0 if it does not tell."""
    command = ["sysctl", "-n", "hw.perflevel0.physicalcpu"]
    try:
        return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def _cpuinfo(key: str) -> str:
    """Return the first value of a key in /proc/cpuinfo; empty if there is none."""
    lines = (line for line in _text(Path("/proc/cpuinfo")).splitlines() if line.startswith(key))
    return next(lines, "").partition(":")[2].strip()


def _words(path: Path) -> list[str]:
    return _text(path).split() or [""]


def _text(path: Path) -> str:
    """Return the text of a file in which the system describes itself; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
