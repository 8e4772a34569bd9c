"""What processes that train one model together tell each other.

Every function also works in a single process, where it costs nothing.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from nmt.errors import CommonError, UserError

T = TypeVar("T")
ALIVE_SECONDS = 2.0
"""Seconds between the messages that the main process is alive while others wait for it."""


def rank() -> int:
    """Return the number of this process, counted from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_main() -> bool:
    """Return whether this is the process that writes files and reports progress."""
    return rank() == 0


@contextmanager
def together() -> Iterator[None]:
    """Raise in all processes, with the same message, a UserError that any process meets in this block."""
    message = ""
    try:
        yield
    except UserError as error:
        message = str(error)
    for each in gather_objects(message):
        if each:
            raise CommonError(each)


@contextmanager
def main_works() -> Iterator[None]:
    """Let the other processes wait until the main process has left this block, however long it takes.

    A thread of the main process tells them that it is alive. If they do not hear from it for runtime.timeout_minutes,
    or if it ends, they raise the error of a lost connection. Nothing else may be exchanged inside the block.
    """
    if not dist.is_initialized():
        yield
    elif is_main():
        done = threading.Event()
        telling = threading.Thread(target=_tell_until, args=(done,), name="alive", daemon=True)
        telling.start()
        try:
            yield
        finally:
            done.set()
            telling.join()
            _tell(done=True)
    else:
        yield
        while not _tell(done=False):
            pass


def _tell_until(done: threading.Event) -> None:
    """Tell the other processes at intervals that this one is alive."""
    with suppress(RuntimeError):  # one of them has ended, which the main thread learns when it is done
        while not done.wait(ALIVE_SECONDS):
            _tell(done=False)


def _tell(*, done: bool) -> bool:
    """Return whether the main process is done, which it tells the others."""
    told = torch.tensor([done])
    dist.broadcast(told, src=0)
    return bool(told)


def check_same(values: Mapping[str, object], what: str) -> None:
    """Raise in all processes if the values of one differ from those of rank 0; `what` names them in the error."""
    first, *others = gather_objects(dict(values))
    for number, theirs in enumerate(others, start=1):
        for key in sorted(first.keys() | theirs.keys()):
            if first.get(key) != theirs.get(key):
                raise CommonError(
                    f"rank {number} has other {what} than rank 0: {key} is {theirs.get(key)}, not {first.get(key)}. "
                    "Start all processes with the same command, on folders that they share"
                )


def average(values: Tensor, *, rounded: bool) -> Tensor:
    """Return the mean of `values` over all processes; computed in bf16 if `rounded`."""
    means = values.to(torch.bfloat16) if rounded else values
    if dist.is_initialized():
        dist.all_reduce(means.div_(world_size()))
    return means.to(values.dtype)


def sum_over_processes(values: Tensor) -> Tensor:
    """Replace each element by its sum over all processes, in place."""
    if dist.is_initialized():
        dist.all_reduce(values)
    return values


def compute_in_parts(function: Callable[[Sequence[Tensor]], Tensor], arguments: Sequence[Tensor]) -> Tensor:
    """Return `function(arguments)`, of which each process computes an equal part.

    All processes need the same arguments. The function returns a stack with a result for each of them, of the same
    shape and type, and none may depend on others.
    """
    if world_size() == 1:
        return function(arguments)
    size = -(-len(arguments) // world_size())
    own = arguments[rank() * size : (rank() + 1) * size]
    part = arguments[0].new_zeros(size, *arguments[0].shape)
    if own:
        part[: len(own)] = function(own)
    results = part.new_empty(size * world_size(), *arguments[0].shape)
    _gather_into(results, part)
    return results[: len(arguments)]


def gather_numbers(number: Tensor) -> Tensor:
    """Return the numbers () of all processes as a vector, in the order of their ranks."""
    if not dist.is_initialized():
        return number[None]
    numbers = number.new_empty(world_size())
    _gather_into(numbers, number[None])
    return numbers


def _gather_into(whole: Tensor, part: Tensor) -> None:
    """Fill a tensor with the parts of all processes, one after the other."""
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # PyTorch 2.13 renamed it
    gather(whole, part)


def highest(value: int) -> int:
    """Return the highest value of any process."""
    return highest_of_each([value])()[0]


def highest_of_each(values: Sequence[int]) -> Callable[[], Sequence[int]]:
    """Begin to find the highest value of any process at each place; the result waits for it, and returns them."""
    if not dist.is_initialized():
        return lambda: values
    shared = torch.tensor(list(values), dtype=torch.int64)
    found = dist.all_reduce(shared, dist.ReduceOp.MAX, async_op=True)

    def wait() -> Sequence[int]:
        found.wait()
        return cast(list[int], shared.tolist())

    return wait


def gather_objects(value: T) -> list[T]:
    """Return the values of all processes, in the order of their ranks."""
    if not dist.is_initialized():
        return [value]
    values: list[T | None] = [None] * world_size()
    dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def barrier() -> None:
    """Wait until all processes have called this."""
    if dist.is_initialized():
        dist.barrier()
