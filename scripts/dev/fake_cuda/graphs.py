"""Count the graphs that torch.compile makes of a model on a fake device, over batches of different shapes."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from fake_cuda.step import fake_batch, fake_trainer
from nmt.config.tree import Config
from nmt.data.batches import IntArray
from nmt.data.loader import DataPosition, GlobalBatch, assemble
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, in_memory
from nmt.text.special import EOS

BATCHES = 10
LONGEST = 400


class Graphs(NamedTuple):
    """What torch.compile made."""

    graphs: int
    breaks: int
    """Places at which a graph ends early, because something cannot be traced."""


def count_graphs(config: Config, mode: FakeTensorMode) -> Graphs:
    """Return the graphs of the forward pass over updates with ten random batches, when the model is compiled."""
    compiled = replace(config, runtime=replace(config.runtime, compile=True))
    torch._dynamo.reset()
    counters.clear()
    counter = CompileCounter()
    with mock.patch.object(torch, "compile", partial(_compile, torch.compile, counter)):
        trainer = fake_trainer(compiled)
        with unset_fake_temporarily():
            batches = list(random_batches(config, trainer.shapes(0)))
        for batch in batches:
            trainer.update(fake_batch(mode, batch))
    return Graphs(counter.frame_count, sum(counters["graph_break"].values()))


def _compile(compile: Any, counter: CompileCounter, model: Any = None, **options: Any) -> Any:
    """Compile as asked, but let the graphs be counted instead of compiled further."""
    for ignored in ("mode", "options"):
        options.pop(ignored, None)
    return compile(model, **{**options, "backend": counter})


def random_batches(config: Config, shapes: Shapes) -> Iterator[GlobalBatch]:
    """Yield batches that differ in the number and length of sentences; in one, these are longer than 256 tokens."""
    random = np.random.default_rng(config.seed)
    for index in range(BATCHES):
        count, mean = int(random.integers(20, 200)), int(random.integers(5, 200))
        if index == BATCHES // 2:
            mean = LONGEST - 10
        source = random.integers(max(1, mean - 3), mean + 4, count)
        target = random.integers(max(1, mean - 5), mean + 6, count)
        micro_batch = assemble(_store(random, source, target, config), np.arange(count), shapes=shapes)
        tokens = int(target.sum()) + count
        yield GlobalBatch([micro_batch], tokens, 2 * tokens, DataPosition())


def _store(random: np.random.Generator, source: IntArray, target: IntArray, config: Config) -> PairStore:
    """Return a corpus of random words in sentences of these lengths."""
    words = EOS + 1, config.tokenizer.vocab_size
    sides = [(random.integers(*words, int(lengths.sum())), lengths) for lengths in (source, target)]
    return in_memory(sides[0], sides[1])
