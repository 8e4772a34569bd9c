"""Measure what the processor needs to call the fused operations of a step: directly, and through PyTorch's dispatcher.

    .venv/bin/python scripts/dev/host_time

The kernels are replaced by functions that return empty tensors, so that only the calls remain. So it needs no GPU, and
the launch of a kernel is not measured.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast
from unittest import mock

import torch

from nmt.model.kernels import rectifier, residual, softmax

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, run_tool, tool_parser

ROUNDS = 9
"""Rounds of calls, of which the fastest counts."""
KERNELS: dict[str, dict[str, Callable[..., Any]]] = {
    "triton_residual": {
        "dropout_add_norm": lambda stream, *_: torch.empty_like(stream),
        "dropout_add_norm_backward": lambda gradient, stream, branch, gain, *_: (
            *(torch.empty_like(each) for each in (stream, branch, gain, gain)),
        ),
    },
    "triton_rectifier": {
        "rectifier_gradient": lambda gradient, _: (torch.empty_like(gradient), torch.empty_like(gradient[0]))
    },
    "triton_softmax": {
        "softmax_gradient_": lambda logits, *_: (torch.empty_like(logits[:, 0]), torch.empty_like(logits[:, 0]))
    },
}
"""What takes the place of the kernels, by module and function."""


class Calls(NamedTuple):
    """An operation, and its cost."""

    name: str
    calls: int
    """Calls in a micro-batch of the paper's models."""
    direct: float
    """Microseconds per call, without the dispatcher."""
    dispatched: float


def main() -> int:
    """Print the table; return the exit code."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--calls", type=at_least(1), default=2000, help="calls per round")
    calls = parser.parse_args().calls
    torch.set_num_threads(1)
    rows = measure(calls)
    print(f"{'microseconds per call':<40}{'calls':>8}{'direct':>10}{'dispatched':>12}")
    for row in rows:
        print(f"{row.name:<40}{row.calls:>8}{row.direct:>10.1f}{row.dispatched:>12.1f}")
    direct, dispatched = (sum(row.calls * getattr(row, way) for row in rows) / 1000 for way in ("direct", "dispatched"))
    print(f"{'milliseconds per micro-batch':<40}{sum(row.calls for row in rows):>8}{direct:>10.2f}{dispatched:>12.2f}")
    return 0


def measure(calls: int) -> list[Calls]:
    """Return the cost of each operation, with this many calls per round."""
    with _without_kernels():
        return [
            Calls(name, count, *(_microseconds(call, calls, dispatched=way) for way in (False, True)))
            for name, count, call in operations()
        ]


def operations() -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield each operation with the number of its calls in a micro-batch, six layers per side."""
    stream, branch = (torch.ones(4, 8, requires_grad=True) for _ in range(2))
    gain, bias = (torch.ones(8, requires_grad=True) for _ in range(2))
    seed, labels, gradient = torch.zeros(1, dtype=torch.int64), torch.zeros(4, dtype=torch.int64), torch.ones(4, 8)

    def both_passes() -> object:
        normed = residual.dropout_add_norm(stream, branch, gain, bias, 0.1, seed, 0)
        return torch.autograd.grad(normed, (stream, branch, gain, bias), gradient)

    yield "dropout, add and norm, with backward", 30, both_passes
    yield "gradient of the rectifier", 12, lambda: rectifier.rectifier_gradient(gradient, gradient)
    yield "softmax to gradient", 4, lambda: softmax.softmax_gradient_(gradient, labels, 0.1)


@contextmanager
def _without_kernels() -> Iterator[None]:
    with ExitStack() as patches:
        for name, functions in KERNELS.items():
            stub = cast(ModuleType, SimpleNamespace(**functions))
            patches.enter_context(mock.patch.dict(sys.modules, {f"nmt.model.kernels.{name}": stub}))
            patches.enter_context(mock.patch.object(sys.modules["nmt.model.kernels"], name, stub, create=True))
        for module in (residual, rectifier, softmax):
            patches.enter_context(mock.patch.object(module, "uses_triton", _yes))
        yield


def _yes(*_: object) -> bool:
    """Answer faster than a mock does, which would be measured, too."""
    return True


def _no() -> bool:
    return False


def _microseconds(call: Callable[[], Any], calls: int, *, dispatched: bool) -> float:
    best = float("inf")
    with ExitStack() as patches:
        for module in (residual, rectifier, softmax):
            patches.enter_context(mock.patch.object(module, "is_traced", _yes if dispatched else _no))
        for _ in range(ROUNDS):
            started = time.perf_counter()
            for _ in range(calls):
                call()
            best = min(best, time.perf_counter() - started)
    return 1e6 * best / calls


if __name__ == "__main__":
    run_tool(main, __file__)
