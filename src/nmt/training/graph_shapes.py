"""Which sizes of micro-batches a compiled model records as CUDA graphs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn

from nmt.model.attention_plan import Plan
from nmt.model.packed import Packed
from nmt.training.hook import Report, TrainingHook

MAX_SHAPES = 64
"""The most sizes that are recorded: each takes memory, and three steps until it is replayed."""

Call = Callable[..., Tensor]


class Shape(NamedTuple):
    """The sizes of a micro-batch on which a graph depends."""

    source_tokens: int
    target_tokens: int
    source_sentences: int
    target_sentences: int
    longest_source: int
    longest_target: int


def shape_of(source: Packed, target: Packed) -> Shape:
    """Return the sizes of a micro-batch; nothing is read from the device."""
    counts = len(source.tokens), len(target.tokens), len(source.offsets), len(target.offsets)
    return Shape(*counts, source.longest, target.longest)


class GraphShapes(TrainingHook):
    """Calls a model with CUDA graphs for the first sizes that training meets, and without for all further ones."""

    def __init__(self, model: nn.Module, with_graphs: Call, without: Call, limit: int = MAX_SHAPES) -> None:
        """Take two compiled forms of a model's forward pass."""
        self._model, self._with_graphs, self._without, self._limit = model, with_graphs, without, limit
        self._recorded: set[Shape] = set()
        self._calls = self._covered = 0
        self._is_full = self._has_said_so = False

    def __call__(self, source: Packed, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the output of the model."""
        more: tuple[Any, ...] = () if plan is None else (plan,)
        if not self._model.training:
            return self._without(source, target, *more)
        shape = shape_of(source, target)
        self._calls += 1
        if shape not in self._recorded:
            self._is_full = len(self._recorded) >= self._limit
            if self._is_full:
                return self._without(source, target, *more)
            self._recorded.add(shape)
        self._covered += 1
        return self._with_graphs(source, target, *more)

    def turn_off(self) -> None:
        """Record nothing from now on."""
        self._limit, self._recorded = 0, set()

    def report(self, step: int) -> Report:
        """See `TrainingHook.report`: the number of recorded sizes, and the share of the forward passes with them."""
        if not self._limit or not self._calls:
            return Report()
        figures = {"graph_shapes": len(self._recorded), "graph_share": round(self._covered / self._calls, 4)}
        self._calls = self._covered = 0
        warnings = []
        if self._is_full and not self._has_said_so:
            self._has_said_so = True
            warnings = [f"{self._limit} sizes of micro-batches are recorded as CUDA graphs; further ones run without"]
        return Report(figures, warnings)
