"""What Linux lets the processes of a container use."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def processor_quotas() -> Iterator[float]:
    """Yield the quotas of processor time, in cores, of the process's control group and of those around it."""
    for words in _limits("cpu.max"):
        if len(words) == 2 and all(map(str.isdigit, words)):
            yield int(words[0]) / int(words[1])
    quota, period = (_words(ROOT / "cpu" / f"cpu.cfs_{each}_us") for each in ("quota", "period"))  # version 1
    if quota and period and quota[0].isdigit() and period[0].isdigit():
        yield int(quota[0]) / int(period[0])


def usable_memory() -> int:
    """Return the memory of the machine in bytes, or what its container may use of it."""
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_memory_limits()])


def _memory_limits() -> Iterator[int]:
    """Yield the limits of memory, in bytes, of the process's control group and of those around it."""
    for words in (*_limits("memory.max"), _words(ROOT / "memory" / "memory.limit_in_bytes")):
        if len(words) == 1 and words[0].isdigit():
            yield int(words[0])


def _limits(name: str) -> Iterator[list[str]]:
    """Yield the words of the files of a name, from the process's own group to the outermost (version 2)."""
    own = [line.rpartition(":")[2].strip("/") for line in lines_of(OWN) if line.startswith("0::")]
    for group in own or [""]:
        for folder in (ROOT / group, *(ROOT / group).parents):
            if folder.is_relative_to(ROOT):
                yield _words(folder / name)


def _words(path: Path) -> list[str]:
    return " ".join(lines_of(path)).split()


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file in which the system describes itself; none if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
