"""Forward and backward passes that are recorded as CUDA graphs, so that a GPU need not wait for the processor.

A pass of the paper's base model is a thousand launches, which take the processor longer than they take a fast GPU. A
graph holds the launches for one size of micro-batch, with fixed buffers for its inputs, losses and gradients.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.graphs import GraphRecorder, explaining_failure
from nmt.data.loader import MicroBatch
from nmt.model.packed import Packed
from nmt.training.loss import Losses
from nmt.training.replicas import Replicas

LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 1e-2
"""The largest relative differences of a replay's loss, and of the norm of its gradient, from those of the pass itself.

On an H200, losses were equal; flash attention adds up the gradients of queries in any order."""
MEMORY_KEPT_FREE = 0.1
"""The share of a device's memory below which nothing more is recorded; the driver keeps some for each graph."""
ALIGNMENT = 64
"""Gradient buffers begin at multiples of this many numbers, so that kernels can load several numbers at a time."""

MAX_SHAPES = 512
"""The most sizes that are recorded: each takes memory, and some time to record."""
RECORDED_AT = 3
"""A size is recorded when it is met this often, so that rare ones take no room."""

Shape = tuple[int, ...]
"""Tokens, sentences and the longest sentence of source and target."""
SetSeed = Callable[[], None]
"""Seeds the random numbers of a pass."""


def shape_of(source: Packed, target: Packed) -> Shape:
    """Return the sizes of a micro-batch on which a graph depends; nothing is read from the device."""
    return tuple(size for side in (source, target) for size in (len(side.tokens), len(side.offsets), side.longest))


class Recording(NamedTuple):
    """A recorded pass with its buffers, apart from those of the gradients."""

    graph: torch.cuda.CUDAGraph
    batch: MicroBatch
    losses: Losses

    def replay(self, batch: MicroBatch) -> None:
        """Run the pass on another micro-batch of the same size."""
        for buffer, given in zip(_tensors(self.batch), _tensors(batch), strict=True):
            buffer.copy_(given, non_blocking=True)
        self.graph.replay()


class RecordedPasses:
    """Runs passes as graphs for the sizes that training meets often; for all others the trainer runs them itself.

    Recorded are the first `MAX_SHAPES` sizes that are met `RECORDED_AT` times. Each recording is compared with the pass
    itself once; if one fails or differs, training ends. All passes of a step, recorded or not, add to the same buffers
    of gradients, which are averaged over the processes when all are done.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._objective, self._parameters = replicas.objective, list(replicas.trained.values())
        self._device = self._parameters[0].device
        self._factor = torch.zeros((), device=self._device)
        """What a pass multiplies the loss by before its gradient."""
        self._met = Counter[Shape]()
        self._recordings: dict[Shape, Recording] = {}
        self._is_full = False
        """Whether there is no memory for a further recording."""

    @cached_property
    def _buffers(self) -> list[Tensor]:
        """A buffer for each gradient, parts of `_flat`; the trial of the largest batch needs none."""
        sizes = [-(-each.numel() // ALIGNMENT) * ALIGNMENT for each in self._parameters]
        self._flat = torch.zeros(sum(sizes), device=self._device)
        parts = zip(self._flat.split(sizes), self._parameters, strict=True)
        return [part[: each.numel()].view(each.shape) for part, each in parts]

    def begin_step(self) -> None:
        """Let all passes of a step add to the gradient buffers."""
        self._set_gradients(self._buffers)
        self._flat.zero_()

    def end_step(self) -> None:
        """Average the gradients over all processes, each of which records the sizes that it meets."""
        if distributed.world_size() > 1:
            distributed.sum_over_processes(self._flat.div_(distributed.world_size()))

    def run(self, batch: MicroBatch, factor: float, set_seed: SetSeed) -> Losses | None:
        """Add the gradient of the loss of a micro-batch times `factor`, and return the losses.

        The next call overwrites the losses. Return None, and do nothing, if the size of the batch is not recorded.
        """
        shape = shape_of(batch.source, batch.target)
        if shape not in self._recordings:
            self._met[shape] += 1
            if self._met[shape] < RECORDED_AT or len(self._recordings) >= MAX_SHAPES or not self._has_room():
                return None
            self._recordings[shape] = self._record(batch.to(self._device), set_seed)
        self._factor.fill_(factor)
        set_seed()
        recording = self._recordings[shape]
        recording.replay(batch)
        return recording.losses

    def _has_room(self) -> bool:
        """Return whether there is memory for a further graph; the first needs as much as everything until now."""
        if not self._is_full:
            needed = 0 if self._recordings else torch.cuda.max_memory_reserved(self._device)
            free, total = torch.cuda.mem_get_info(self._device)
            self._is_full = free - needed <= MEMORY_KEPT_FREE * total
        return not self._is_full

    def _record(self, batch: MicroBatch, set_seed: SetSeed) -> Recording:
        """Return the recorded pass of a batch; the gradients of earlier micro-batches are kept."""
        with explaining_failure("set runtime.cuda_graphs=false, and the same command resumes from the last checkpoint"):
            return self._checked(batch, set_seed)

    def _checked(self, batch: MicroBatch, set_seed: SetSeed) -> Recording:
        """Return the recording of a pass; raise an error if its replay differs from the pass itself."""
        self._factor.fill_(1 / len(batch.labels))
        set_seed()
        exact = self._pass(batch)
        expected = float(exact.smoothed), _norm(self._new_gradients())
        recording = self._capture(batch)
        self._set_gradients(self._buffers)
        before = self._flat.clone()
        self._flat.zero_()
        set_seed()
        recording.replay(batch)
        found = float(recording.losses.smoothed), _norm(self._buffers)
        self._flat.copy_(before)
        for ours, theirs, tolerance in zip(found, expected, (LOSS_TOLERANCE, GRADIENT_TOLERANCE), strict=True):
            if abs(ours - theirs) > tolerance * abs(theirs):  # false if the text has a loss that is not finite
                raise RuntimeError(f"a replay computes {ours:.7g} instead of {theirs:.7g}")
        return recording

    def _capture(self, batch: MicroBatch) -> Recording:
        """Record a pass that adds to the gradient buffers; nothing is computed."""
        losses = Losses(*(torch.zeros((), device=self._device) for _ in Losses._fields))

        def work() -> None:
            torch._foreach_copy_(list(losses), list(self._pass(batch)))
            torch._foreach_add_(self._buffers, self._new_gradients())
            self._set_gradients([None] * len(self._parameters))  # freed tensors leave memory to the next graph

        return Recording(self._recorder.record(work), batch, losses)

    @cached_property
    def _recorder(self) -> GraphRecorder:
        return GraphRecorder(self._device)

    def _pass(self, batch: MicroBatch) -> Losses:
        """Run a pass whose gradients are new tensors."""
        self._set_gradients([None] * len(self._parameters))
        losses: Losses = self._objective(batch)
        (losses.smoothed * self._factor).backward()
        return Losses(*(each.detach() for each in losses))

    def _new_gradients(self) -> list[Tensor]:
        found = [each.grad for each in self._parameters if each.grad is not None]
        if len(found) < len(self._parameters):
            raise RuntimeError("some parameters have no gradient")
        return found

    def _set_gradients(self, gradients: Sequence[Tensor | None]) -> None:
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient


def _norm(gradients: list[Tensor]) -> float:
    return float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))


def _tensors(batch: MicroBatch) -> list[Tensor]:
    sides = (batch.source, batch.target)
    return [*(each for side in sides for each in (side.tokens, side.positions, side.offsets)), batch.labels]
