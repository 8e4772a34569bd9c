"""The two parts of the shared matrix's gradient add up to the whole, and the late part is small."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.data.batches import Batching
from nmt.data.loader import DataPosition, MicroBatch, global_batches
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, in_memory
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.model.word_vectors import WordVectors
from nmt.text.special import BOS, EOS, PAD
from nmt.training.objective import Objective
from nmt.training.replicas import EmbeddingGradient, parallel
from tests.unit.training.test_trainer import MODEL, TRAINING, VOCABULARY, batches_of, store

__all__ = ["store"]


def vectors_of(model: object) -> WordVectors:
    assert isinstance(model, nn.Module)
    return next(module for module in model.modules() if isinstance(module, WordVectors))


@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
def test_both_parts_together_are_the_gradient(store: PairStore, architecture: str) -> None:
    model = build_model(replace(MODEL, architecture=architecture), VOCABULARY, VOCABULARY).double()
    objective, matrix = Objective(model, 0.1), model.projection
    (batch,) = batches_of(store, replace(TRAINING, batch_tokens=30), 1)
    objective(batch.micro_batches[0]).smoothed.backward()
    expected, matrix.grad = matrix.grad, None
    apart = EmbeddingGradient(vectors_of(model))
    for weight in (0.25, 0.75):  # as if accumulated
        with apart.apart():
            (weight * objective(batch.micro_batches[0]).smoothed).backward()
    assert expected is not None
    assert matrix.grad is not None
    early = matrix.grad.clone()
    words = torch.cat([batch.micro_batches[0].source.tokens, batch.micro_batches[0].target.tokens]).unique()
    assert len(words) < VOCABULARY
    apart.add_average(words)
    assert not torch.allclose(early, expected, rtol=1e-2)
    torch.testing.assert_close(matrix.grad, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("devices", [1, 3])
def test_each_device_knows_the_words_of_the_whole_batch(store: PairStore, devices: int) -> None:
    streams = [
        global_batches(store, Batching(60, seed=1), device_tokens=0, start=DataPosition(), rank=rank, devices=devices)
        for rank in range(devices)
    ]
    for _ in range(5):
        batches = [next(stream) for stream in streams]
        words: set[int] = {PAD, BOS, EOS}
        for batch in batches:
            for each in batch.micro_batches:
                words |= {*each.source.tokens.tolist(), *each.target.tokens.tolist()}
        for batch in batches:
            if devices == 1:
                assert batch.words is None
            else:
                assert batch.words is not None
                assert batch.words.tolist() == sorted(words)


def test_on_a_gpu_words_without_a_gradient_fill_up_the_number_of_rows() -> None:
    random = np.random.default_rng(1)
    text = in_memory(*((random.zipf(1.3, 40_000) % 30_000 + 4, np.full(2000, 20)) for _ in range(2)))

    def words_with(shapes: Shapes) -> list[set[int]]:
        batches = global_batches(
            text, Batching(8000, seed=1), device_tokens=0, start=DataPosition(), rank=0, devices=2, shapes=shapes
        )
        found = [next(batches).words for _ in range(5)]
        assert all(each is not None and torch.equal(each, each.unique()) for each in found)
        return [set(each.tolist()) for each in found if each is not None]

    exact, filled = words_with(Shapes()), words_with(Shapes.on_gpu(4000))
    assert len({len(each) for each in exact}) == 5
    assert len({len(each) for each in filled}) <= 2
    for own, more in zip(exact, filled, strict=True):
        assert own <= more
        assert len(more) <= 1.13 * len(own)
        assert max(more) == max(own)


@pytest.fixture
def _eight_processes() -> Iterator[None]:
    """Form a group of eight processes, seven of which are not there, and which exchange nothing."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    yield
    dist.destroy_process_group()


def reductions(objective: Objective, apart: EmbeddingGradient | None) -> list[tuple[float, list[str]]]:
    """Return the megabytes and the parameters of each bucket of gradients, in the order in which they are reduced."""
    shared = parallel(objective)
    names = {parameter: name for name, parameter in objective.named_parameters()}
    found: list[tuple[float, list[str]]] = []

    def note(_: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
        found.append((bucket.buffer().nbytes / 1e6, [names[each] for each in bucket.parameters()]))
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    shared.register_comm_hook(None, note)  # type: ignore[operator]
    stream = Packed.from_lengths(torch.arange(4, 68), torch.tensor([32, 32]))
    for _ in range(2):  # the first backward pass determines the buckets of the second
        found.clear()
        with apart.apart() if apart is not None else torch.enable_grad():
            shared(MicroBatch(stream, stream, stream.tokens, np.arange(2))).smoothed.backward()
    return found


@pytest.mark.usefixtures("_eight_processes")
def test_the_shared_matrix_is_reduced_first_instead_of_last() -> None:
    objective = Objective(build_model(ModelConfig(), 37_000, 37_000), 0.1)
    whole = reductions(objective, None)
    objective.zero_grad(set_to_none=True)
    parts = reductions(objective, EmbeddingGradient(vectors_of(objective)))
    matrix = "model.vectors.shared"
    assert matrix in whole[-1][1]
    assert whole[-1][0] > 75
    assert parts[0][1] == [matrix]
    assert parts[-1][0] < 30
    assert sum(size for size, _ in parts) == pytest.approx(sum(size for size, _ in whole))
