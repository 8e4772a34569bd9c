"""In fp32 no step, validation or search computes in bf16, which CPUs without its instructions emulate; nor in fp16."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.compute.machine import Machine
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.data.store import PairStore
from nmt.decoding.torch_engine import TorchEngine
from nmt.model.backends.chosen import choose
from nmt.model.build import build_model
from nmt.text.tokenizer import Tokenizer
from nmt.training.trainer import Trainer
from nmt.training.validation import held_out_loss
from tests.unit.decoding.test_torch_engine import LINES, tokenizer
from tests.unit.training.test_trainer import VOCABULARY, batches_of, store, training_with

__all__ = ["store", "tokenizer"]
MODEL = ModelConfig(layers=1, d_model=32, d_ff=64, heads=2, dropout=0.1)
CPU = torch.device("cpu")
HALF = (torch.bfloat16, torch.float16)
TRAINED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"clip_norm": 1.0}),
    ({}, {"optimizer": "muon"}),
    ({}, {"freeze": ["encoder"]}),
    ({"positions": "rotary", "norm": "rms", "activation": "swiglu"}, {}),
    ({"positions": "alibi", "activation": "gelu"}, {}),
    ({"positions": "relative"}, {}),
    ({"positions": "learned"}, {}),
    ({"architecture": "decoder_only", "positions": "sinusoidal"}, {}),
]
"""Models and how they are trained."""
SEARCHES: list[dict[str, Any]] = [{}, {"strategy": "sample"}, {"strategy": "mbr", "candidates": 4}]


class Watch(TorchDispatchMode):
    """Records the operations that read or write numbers of the given types."""

    def __init__(self, *types: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.types = types
        self.found: set[str] = set()
        self.seen = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        self.seen += 1
        if any(isinstance(each, Tensor) and each.dtype in self.types for each in tree_leaves((args, kwargs, result))):
            self.found.add(str(operation))
        return result


def train(store: PairStore, precision: torch.dtype, model: dict[str, Any], training: dict[str, Any]) -> None:
    config, shape = training_with(**training), replace(MODEL, **model)
    built = build_model(shape, VOCABULARY, VOCABULARY)
    ours = Trainer(built, config, Machine(CPU, precision), seed=1, parallel=1)
    batches = batches_of(store, config, 2)
    for batch in batches:
        ours.update(batch)
    micro_batches = [each for batch in batches for each in batch.micro_batches]
    held_out_loss(ours.working_weights, micro_batches, config, CPU)


def watched(precision: torch.dtype, kernels: bool) -> Watch:
    """Return a watch for what the precision must not use: fp32 no half numbers, fp16 none in bf16."""
    if (choose(Machine(CPU, torch.bfloat16), kernels=kernels).name == "cpu") != kernels:
        pytest.skip("needs a C compiler")
    return Watch(*HALF) if precision == torch.float32 else Watch(torch.bfloat16)


@pytest.mark.parametrize(
    ("precision", "model", "training"),
    [*((torch.float32, *each) for each in TRAINED), *((torch.float16, *each) for each in TRAINED[:2])],
    ids=str,
)
def test_training_uses_no_lower_precision_than_asked_for(
    store: PairStore, precision: torch.dtype, model: dict[str, Any], training: dict[str, Any]
) -> None:
    for kernels in (False, True):
        with watched(precision, kernels) as watching:
            train(store, precision, model, training)
        assert watching.seen
        assert not watching.found


@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
@pytest.mark.parametrize(
    ("precision", "search"), [*((torch.float32, each) for each in SEARCHES), (torch.float16, SEARCHES[0])], ids=str
)
def test_searches_use_no_lower_precision_than_asked_for(
    tokenizer: Tokenizer, precision: torch.dtype, architecture: str, search: dict[str, Any]
) -> None:
    model = build_model(replace(MODEL, architecture=architecture), tokenizer.source_size, tokenizer.target_size)
    for kernels in (False, True):
        with watched(precision, kernels) as watching:
            engine = TorchEngine([model], tokenizer, DecodingConfig(extra_length=4, **search), CPU, precision)
            assert len(list(engine.translate(LINES))) == len(LINES)
            engine.score(LINES[:1], LINES[:1])
        assert not watching.found
