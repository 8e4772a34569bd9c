"""How much of its time this process waits for processors that other programs use."""

from contextlib import suppress
from pathlib import Path

THREADS = Path("/proc/self/task")


class Contention:
    """Compares how long the threads of this process run and wait for a processor, from its creation on."""

    def __init__(self) -> None:
        """Begin to count."""
        self._before = _times()

    def share(self) -> float:
        """Return the share of the time in which threads could have run, but waited; 0 if the system does not tell."""
        ran = waited = 0
        for thread, now in _times().items():
            before = self._before.get(thread, (0, 0))
            ran, waited = ran + now[0] - before[0], waited + now[1] - before[1]
        return waited / (ran + waited) if waited > 0 else 0.0


def _times() -> dict[str, tuple[int, int]]:
    """Return the nanoseconds that each living thread has run, and that it has waited for a processor."""
    found = {}
    for file in THREADS.glob("*/schedstat"):
        with suppress(OSError, ValueError):  # the thread has just ended
            ran, waited, _ = file.read_text(encoding="ascii").split()
            found[file.parent.name] = (int(ran), int(waited))
    return found
