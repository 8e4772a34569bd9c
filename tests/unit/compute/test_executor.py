"""All executors give the same results and raise the same errors."""

import sys
import threading

import pytest

from nmt.compute.executor import Executor, Parallelism

EXECUTORS = [Executor(), Executor(Parallelism.THREADS, 2)]
if sys.platform == "linux":
    EXECUTORS.append(Executor(Parallelism.FORKS, 2))


def square(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number * number


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_each_task_comes_with_its_result(executor: Executor) -> None:
    assert sorted(executor.run(square, range(20))) == [(number, number * number) for number in range(20)]
    assert list(executor.run(square, [])) == []


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_an_error_is_raised_to_the_caller(executor: Executor) -> None:
    with pytest.raises(ValueError, match="-3 is negative"):
        list(executor.run(square, [1, 2, -3, 4]))


def test_serial_tasks_run_in_order_and_only_when_their_results_are_needed() -> None:
    begun: list[tuple[int, int]] = []
    results = Executor().run(lambda task: begun.append((task, threading.get_ident())), [3, 1, 2])
    assert next(results)[0] == 3
    assert begun == [(3, threading.get_ident())]
    assert [task for task, _ in results] == [1, 2]
