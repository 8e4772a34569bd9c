"""What the processes of a program use, as Linux shows it in /proc."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def children(pid: int) -> Iterator[int]:
    """Yield the child processes of a process; none if it has ended."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())


def family(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    for child in children(pid):
        yield from family(child)


def model_processes(pid: int) -> list[int]:
    """Return the processes of a server's models."""
    return [child for child in children(pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_alive(pid: int) -> bool:
    """Return whether a process has not ended."""
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended."""
    return sum(map(int, _stat(pid)[11:15])) / TICKS


def memory(pid: int) -> int:
    """Return the bytes of a process in memory."""
    return _bytes(Path(f"/proc/{pid}/status"), "VmRSS")


def own_share_of_memory(pid: int) -> int:
    """Return the bytes in memory, mapped files included; shared memory is divided among its processes."""
    return _bytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def _stat(pid: int) -> list[str]:
    """Return the fields after the name, which may contain spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _bytes(file: Path, field: str) -> int:
    return sum(1024 * int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(f"{field}:"))
