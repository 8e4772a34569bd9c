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


def state(pid: int) -> str:
    """Return the letter of a process's state, such as R for running and Z for ended but not waited for."""
    return _stat(pid)[0]


def is_alive(pid: int) -> bool:
    """Return whether a process has not ended."""
    try:
        return state(pid) not in "ZX"
    except OSError:
        return False


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended."""
    return sum(map(int, _stat(pid)[11:15])) / TICKS


def status(pid: int) -> dict[str, str]:
    """Return the fields of a process's status."""
    return _fields(Path(f"/proc/{pid}/status").read_text())


def memory(pid: int, kind: str = "VmRSS") -> int:
    """Return bytes of memory of a process: resident ones, or another kind of its status."""
    return 1024 * int(status(pid).get(kind, "0 kB").split()[0])


def own_share_of_memory(pid: int) -> int:
    """Return the bytes in memory, mapped files included; shared memory is divided among its processes."""
    return 1024 * int(_fields(Path(f"/proc/{pid}/smaps_rollup").read_text())["Pss"].split()[0])


def _stat(pid: int) -> list[str]:
    """Return the fields after the name, which may contain spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _fields(text: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
