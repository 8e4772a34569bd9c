"""In float32, no step, validation or search makes an operation in bf16, which CPUs without its instructions emulate."""

from collections.abc import Iterator, Mapping
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
from nmt.training.statistics import held_out_loss
from nmt.training.trainer import Trainer
from tests.unit.decoding.test_torch_engine import LINES, tokenizer
from tests.unit.training.test_trainer import VOCABULARY, batches_of, store, training_with

__all__ = ["store", "tokenizer"]
MODEL = ModelConfig(layers=1, d_model=32, d_ff=64, heads=2, dropout=0.1)
CPU = torch.device("cpu")
HALF = (torch.bfloat16, torch.float16)
OPTIMIZERS: list[dict[str, Any]] = [{"optimizer": name} for name in CHOICES["training.optimizer"]]
OTHERS: list[dict[str, Any]] = [{"r_drop": 5.0}, {"ema": 0.9}, {"clip_norm": 1.0}, {"freeze": ["encoder"]}]
MODELS: list[dict[str, Any]] = [
    {setting: name}
    for setting in ("architecture", "positions", "norm", "activation")
    for name in CHOICES[f"model.{setting}"]
]
SEARCHES: list[dict[str, Any]] = [{}, {"beam": 1}, {"strategy": "sample"}, {"strategy": "mbr", "candidates": 4}]


class Watch(TorchDispatchMode):
    """Records the operations that read or write numbers of fewer than 32 bits, or of the given types."""

    def __init__(self, *types: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.types = types or HALF
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


@pytest.fixture(params=[False, True], ids=["PyTorch", "C"])
def watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    if (choose(Machine(CPU, torch.bfloat16), kernels=request.param).name == "cpu") != request.param:
        pytest.skip("needs a C compiler")
    with Watch() as watching:
        yield watching
    assert watching.seen
    assert not watching.found


def train(store: PairStore, precision: torch.dtype, model: dict[str, Any], training: dict[str, Any]) -> None:
    config, shape = training_with(**training), replace(MODEL, **model)
    built = build_model(shape, VOCABULARY, VOCABULARY)
    ours = Trainer(built, config, Machine(CPU, precision), seed=1, parallel=1)
    batches = batches_of(store, config, 2)
    for batch in batches:
        ours.update(batch)
    micro_batches = [each for batch in batches for each in batch.micro_batches]
    held_out_loss(ours.working_weights, micro_batches, config, CPU)


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("training", [*OPTIMIZERS, *OTHERS], ids=str)
def test_training_in_float32_computes_in_float32(store: PairStore, training: dict[str, Any]) -> None:
    train(store, torch.float32, {}, training)


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_models_in_float32_compute_in_float32(store: PairStore, model: dict[str, Any]) -> None:
    train(store, torch.float32, model, {})


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_searches_in_float32_compute_in_float32(
    tokenizer: Tokenizer, architecture: str, search: dict[str, Any]
) -> None:
    model = build_model(replace(MODEL, architecture=architecture), tokenizer.source_size, tokenizer.target_size)
    engine = TorchEngine([model], tokenizer, DecodingConfig(**search), CPU, torch.float32)
    assert len(list(engine.translate(LINES))) == len(LINES)
    engine.score(LINES[:1], LINES[:1])


@pytest.mark.parametrize("training", [*OPTIMIZERS, *OTHERS], ids=str)
def test_training_in_fp16_makes_no_operation_in_bf16(store: PairStore, training: dict[str, Any]) -> None:
    with Watch(torch.bfloat16) as watching:
        train(store, torch.float16, {}, training)
    assert watching.seen
    assert not watching.found


@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_searches_in_fp16_make_no_operation_in_bf16(
    tokenizer: Tokenizer, architecture: str, search: dict[str, Any]
) -> None:
    model = build_model(replace(MODEL, architecture=architecture), tokenizer.source_size, tokenizer.target_size)
    with Watch(torch.bfloat16) as watching:
        engine = TorchEngine([model], tokenizer, DecodingConfig(**search), CPU, torch.float16)
        assert len(list(engine.translate(LINES))) == len(LINES)
        engine.score(LINES[:1], LINES[:1])
    assert not watching.found


def test_the_watch_sees_bf16(store: PairStore) -> None:
    with Watch() as watching:
        train(store, torch.bfloat16, {}, {})
    assert {"aten.mm.default", "aten.addmm.default"} & watching.found


def test_torchs_muon_would_be_seen() -> None:
    weight = torch.nn.Parameter(torch.randn(4, 4))
    weight.grad = torch.randn(4, 4)
    with Watch() as watching:
        torch.optim.Muon([weight]).step()
    assert watching.found


def test_every_choice_is_watched() -> None:
    models = {f"model.{name}" for each in MODELS for name in each}
    assert models == {setting for setting in CHOICES if setting.startswith("model.")}
