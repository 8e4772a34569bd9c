"""Run a function over tasks: one after the other, in threads, or in copies of this process."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from nmt.compute.forks import run_tasks_in_forks
from nmt.compute.threads import run_tasks_in_threads

T = TypeVar("T")
R = TypeVar("R")


class Parallelism(Enum):
    """How tasks run."""

    SERIAL = auto()
    """This thread, one after the other."""
    THREADS = auto()
    """Threads with an equal share of the cores, for tasks made of large operations."""
    FORKS = auto()
    """Copies of this process with one core each, for tasks made of small operations; see `can_fork`."""


@dataclass(frozen=True, slots=True)
class Executor:
    """A way to run tasks."""

    parallelism: Parallelism = Parallelism.SERIAL
    workers: int = 1
    """The number of threads or copies."""

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Generator[tuple[T, R]]:
        """Yield each task with its result, in the order in which they finish.

        An error of the function is raised here. Close the iterator if you may leave it before its end: that stops
        tasks that are still running.
        """
        match self.parallelism:
            case Parallelism.THREADS:
                return run_tasks_in_threads(function, tasks, self.workers)
            case Parallelism.FORKS:
                return run_tasks_in_forks(function, tasks, self.workers)
        return ((task, function(task)) for task in tasks)
