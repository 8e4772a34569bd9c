"""Processes that train together tell each other what they do, so that one that hangs can be named."""

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Protocol, cast

import torch.distributed as dist

FIRST_REPORTERS = 2
"""The number of ranks, from 0 on, that watch the others; the first of them that is alive reports."""
SILENT_INTERVALS = 2.5
"""A process that has not spoken for that many intervals does not answer."""
LOOKS = 4
"""One must look this often to know who is silent."""


class Board(Protocol):
    """What all processes can write to and read from, such as torchrun's store."""

    def set(self, key: str, value: str) -> object:
        """Write a text under a key."""

    def get(self, key: str) -> bytes:
        """Return the text under a key, which must exist."""

    def check(self, keys: list[str]) -> bool:
        """Return whether all keys exist."""


def shared_board() -> Board | None:
    """Return what the processes of this run share, over a connection of its own; None if there is only one."""
    if not dist.is_initialized():
        return None
    store: Any = dist.distributed_c10d._get_default_store()
    return cast(Board, store.clone())


@dataclass(frozen=True, slots=True)
class Beat:
    """What a process does at a moment."""

    number: int = 0
    """Counts the beats of a process."""
    step: int = 0
    """The steps that it has done."""
    doing: str = ""
    """The part of the step that it is in."""
    operations: int = 0
    """The operations that it has begun together with the others."""
    operation: str = ""
    """The last of them."""
    host: str = field(default_factory=socket.gethostname)


class Seen(NamedTuple):
    """The last beat of a process, and for how many seconds there has been no newer one."""

    beat: Beat
    silent_seconds: float


Operations = Callable[[], tuple[int, str]]
"""Returns how many operations this process has begun together with the others, and the last one's name."""


class Heartbeat:
    """A thread that says what this process does, and reports once if it does not go on.

    The main thread only assigns `step` and `doing`. The thread has a connection of its own, so that it can speak while
    the main thread waits for other processes.
    """

    def __init__(
        self,
        board: Board,
        rank: int,
        size: int,
        *,
        seconds: float,
        report: Callable[[str], None],
        operations: Operations = lambda: (0, ""),
        stuck: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare to beat.

        Args:
            board: What the processes share.
            rank: This process.
            size: The number of processes.
            seconds: A process that does no step for this long hangs.
            report: Receives a line about a process that hangs.
            operations: Tells what this process does with the others.
            stuck: Called once when this process hangs, to write down what can be known.
        """
        self.step, self.doing, self.paused = 0, "", True
        """What this process does; while paused it may take any time."""
        self._board, self._rank, self._size, self._seconds = board, rank, size, seconds
        self._report, self._operations, self._stuck = report, operations, stuck
        self._said, self._seen, self._times = Beat(), dict[int, Beat](), dict[int, float]()
        self._progress: tuple[int, str, bool] = (0, "", True)
        self._since, self._stuck_at, self._reported_at = time.monotonic(), -1, -1
        self._looks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    @property
    def host(self) -> str:
        """The machine of this process."""
        return self._said.host

    @property
    def interval(self) -> float:
        """The seconds between beats."""
        return min(5.0, self._seconds / 4)

    def close(self) -> None:
        """Stop beating."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(self.interval)

    def _run(self) -> None:
        try:
            self.beat()
            while not self._ended.wait(self.interval):
                self.beat()
        except (RuntimeError, OSError):  # the process with the store has ended, and torchrun ends this one, too
            return

    def beat(self) -> None:
        """Say what this process does, and find out whether one hangs; the thread does this at each interval."""
        now, progress = time.monotonic(), (self.step, self.doing, self.paused)
        if progress != self._progress:
            self._progress, self._since, self._looks = progress, now, 0
        hangs = not self.paused and now - self._since > self._seconds
        count, name = self._operations() if hangs else (0, "")
        self._said = replace(
            self._said, number=self._said.number + 1, step=self.step, doing=self.doing, operations=count, operation=name
        )
        self._board.set(f"beat/{self._rank}", json.dumps(asdict(self._said)))
        if hangs and self._stuck_at != self.step:
            self._stuck_at = self.step
            self._stuck()
            return  # by the next beat, the others have said what they do
        if hangs and self._rank < FIRST_REPORTERS and self._reported_at != self.step:
            self._look(now)

    def _look(self, now: float) -> None:
        """Report who hangs, if all have been looked at for long enough to know whether they are silent."""
        for rank in range(self._size):
            key = f"beat/{rank}"
            beat = Beat(**json.loads(self._board.get(key))) if self._board.check([key]) else Beat(host="unknown")
            if self._seen.get(rank) != beat:
                self._seen[rank], self._times[rank] = beat, now
        seen = {rank: Seen(beat, now - self._times[rank]) for rank, beat in self._seen.items()}
        self._looks += 1
        if self._looks < LOOKS:
            return
        self._reported_at = self.step
        if all(seen[rank].silent_seconds > SILENT_INTERVALS * self.interval for rank in range(self._rank)):
            self._report(who_hangs(seen, now - self._since, SILENT_INTERVALS * self.interval))


def who_hangs(seen: Mapping[int, Seen], seconds: float, silence: float) -> str:
    """Return one line about the processes for which the others wait.

    Args:
        seen: What is known of each rank.
        seconds: For how long nothing has happened.
        silence: A process whose last beat is older than this many seconds does not answer.
    """
    start = f"no step for {seconds:.0f} seconds: "
    silent = {rank: each for rank, each in seen.items() if each.silent_seconds > silence}
    if silent:
        named = ", ".join(
            f"rank {rank} on {each.beat.host} (last heard of in {_where(each.beat)})" for rank, each in silent.items()
        )
        return f"{start}{named} does not answer; it has been stopped or killed, or its machine cannot be reached"
    progress = {rank: (each.beat.step, each.beat.operations) for rank, each in seen.items()}
    least = min(progress.values())
    late = [rank for rank, each in progress.items() if each == least]
    if len(late) == len(seen):
        where = _where(next(iter(seen.values())).beat)
        return f"{start}all ranks wait for each other ({where}); the network between their devices may be broken"
    named = ", ".join(f"rank {rank} on {seen[rank].beat.host} ({_where(seen[rank].beat)})" for rank in late)
    other = next(each.beat for rank, each in seen.items() if rank not in late)
    return f"{start}the others wait ({_where(other)}) for {named}"


def _where(beat: Beat) -> str:
    operation = f", operation {beat.operations}: {beat.operation}" if beat.operation else ""
    return f"step {beat.step + 1}, {beat.doing or 'start'}{operation}"
