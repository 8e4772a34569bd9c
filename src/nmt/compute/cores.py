"""The processor and the memory: their names and sizes, and what of them this process or its container may use."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

SYSTEM, PROCESS = Path("/sys"), Path("/proc/self")
"""Where Linux describes the machine, and this process."""
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
"""Linux's names of the instructions that decide about the speed of matrix products."""


def usable_cores() -> int:
    """Return the number of cores this process may keep busy: those it may run on, or what its container may use.

    A quota of processor time is rounded down: threads beyond it would wait for the next period with the others.
    """
    quotas = [int(each[0]) // int(each[1]) for each in _limits("cpu.max")]
    return max(1, min([len(_usable_numbers()), *quotas]))


def computing_threads() -> int:
    """Return the number of threads that share a matrix product: one per usable core that is as fast as the fastest.

    Two threads of one core share its arithmetic units, and an operation takes as long as its slowest thread.
    """
    usable = _usable_numbers()
    fast = usable & _numbers(_text(SYSTEM / "devices/cpu_core/cpus")) or usable  # without Intel's efficiency cores
    topologies = (SYSTEM / f"devices/system/cpu/cpu{each}/topology/thread_siblings_list" for each in fast)
    cores = {min({each, *_numbers(_text(siblings))} & fast) for each, siblings in zip(fast, topologies, strict=True)}
    return min(len(cores), usable_cores())


def usable_memory() -> int:
    """Return the memory of the machine in bytes, or what its container may use of it."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *(int(each[0]) for each in _limits("memory.max"))])


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
    """Return the name of the processor and its widest instructions."""
    flags = cpu_features().split()
    return ", ".join([cpu_model(), *(each for each in INSTRUCTIONS if each in flags)])


def _limits(name: str) -> Iterator[list[str]]:
    """Yield the limits in the files of a name, from the process's own control group to the outermost."""
    top = SYSTEM / "fs/cgroup"
    own = [line.rpartition(":")[2].strip("/") for line in _text(PROCESS / "cgroup").splitlines() if line[:3] == "0::"]
    group = top.joinpath(*own)
    for folder in (group, *group.parents):
        limit = _text(folder / name).split() if folder.is_relative_to(top) else []
        if limit and all(map(str.isdigit, limit)):  # neither "max"
            yield limit


def _usable_numbers() -> set[int]:
    """Return the numbers of the logical processors this process may run on; macOS only tells how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _numbers(text: str) -> set[int]:
    """Return the numbers of a list such as 0-3,8."""
    ranges = [part.partition("-")[::2] for part in text.split(",") if part]
    return {number for first, last in ranges for number in range(int(first), int(last or first) + 1)}


def _cpuinfo(key: str) -> str:
    """Return the first value of a key in /proc/cpuinfo; empty if there is none."""
    lines = (line for line in _text(Path("/proc/cpuinfo")).splitlines() if line.startswith(key))
    return next(lines, "").partition(":")[2].strip()


def _text(path: Path) -> str:
    """Return the text of a file in which the system describes itself; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
