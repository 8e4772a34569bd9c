"""Which sizes of micro-batches a compiled model records as CUDA graphs."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn

from nmt.model.attention_plan import Plan
from nmt.model.packed import Packed
from nmt.training.hook import Report, TrainingHook

MAX_SHAPES = 128
"""The most sizes that are recorded: each takes memory, and three steps until it is replayed."""
RECORDED_AT = 3
"""A size is recorded when it is met this often, so that rare ones take no room."""

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


class Recorded:
    """The sizes that are recorded: the first that have been met `RECORDED_AT` times."""

    def __init__(self, limit: int = MAX_SHAPES) -> None:
        """Record at most `limit` sizes."""
        self.limit = limit
        self.shapes: set[Shape] = set()
        self._met = Counter[Shape]()

    def meet(self, shape: Shape) -> bool:
        """Take note of a micro-batch of this size, and return whether the size is recorded, perhaps from now on."""
        if shape not in self.shapes and not self.is_full:
            self._met[shape] += 1
            if self._met[shape] >= RECORDED_AT:
                self.shapes.add(shape)
        return shape in self.shapes

    @property
    def is_full(self) -> bool:
        """Whether no further size will be recorded."""
        return len(self.shapes) >= self.limit


class GraphShapes(TrainingHook):
    """Calls a model with CUDA graphs for the sizes that training meets often, and without for all others."""

    def __init__(self, model: nn.Module, with_graphs: Call, without: Call) -> None:
        """Take two compiled forms of a model's forward pass."""
        self._model, self._with_graphs, self._without = model, with_graphs, without
        self.recorded = Recorded()
        self._calls = self._covered = 0
        self._has_said_so = False

    def __call__(self, source: Packed, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the output of the model."""
        more: tuple[Any, ...] = () if plan is None else (plan,)
        if not self._model.training:
            return self._without(source, target, *more)
        is_recorded = self.recorded.meet(shape_of(source, target))
        self._calls += 1
        self._covered += is_recorded
        return (self._with_graphs if is_recorded else self._without)(source, target, *more)

    def turn_off(self) -> None:
        """Record nothing from now on."""
        self.recorded = Recorded(0)

    def report(self, step: int) -> Report:
        """See `TrainingHook.report`: the number of recorded sizes, and the share of the forward passes with them."""
        limit = self.recorded.limit
        if not limit or not self._calls:
            return Report()
        figures = {"graph_shapes": len(self.recorded.shapes), "graph_share": round(self._covered / self._calls, 4)}
        self._calls = self._covered = 0
        lines = []
        if self.recorded.is_full and not self._has_said_so:
            self._has_said_so = True
            lines = [f"{limit} sizes of micro-batches are recorded as CUDA graphs; others run without"]
        return Report(figures, lines=lines)
