"""A head that learns alignments, against autograd over the attention of single sentences in float64."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.config.model import ModelConfig
from nmt.data.alignments import NAME
from nmt.data.batches import Batching, plan_epoch
from nmt.data.loader import CPU_SHAPES, GlobalBatch, global_batches
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore, writing
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS
from nmt.training.objective import Objective
from nmt.training.schedule import learning_rate
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import CPU, START, TRAINING, VOCABULARY

MODEL = ModelConfig(layers=2, d_model=16, d_ff=32, heads=4, kv_heads=2, dropout=0.0)
GPU_SHAPES = Shapes(full_tokens=64, token_step=16, buckets=True)
"""Streams end with sentences without tokens."""


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    """Return pairs with several links per word, words without links, and pairs without links."""
    random = np.random.default_rng(1)
    with writing(tmp_path, "train", ("en", "de"), VOCABULARY, [NAME]) as writer:
        for pair in range(40):
            source, target = (random.integers(4, VOCABULARY, random.integers(1, 12)) for _ in range(2))
            linked = np.argwhere(random.random((len(target), len(source))) < (0 if pair % 5 == 0 else 0.3))
            writer.append(
                source.astype(np.uint16), np.array([len(source)], np.int32),
                target.astype(np.uint16), np.array([len(target)], np.int32),
                linked.flatten().astype(np.uint16), np.array([linked.size], np.int32),
            )  # fmt: skip
    return PairStore.open(tmp_path, "train")


def batches(
    store: PairStore, device_tokens: int = 0, rank: int = 0, devices: int = 1, shapes: Shapes = CPU_SHAPES
) -> Iterator[GlobalBatch]:
    budget = Batching(TRAINING.batch_tokens, seed=1)
    return global_batches(
        store, budget, device_tokens=device_tokens, start=START, rank=rank, devices=devices, shapes=shapes,
        with_links=True,
    )  # fmt: skip


def plain_loss(model: TranslationModel, store: PairStore, sentences: list[int]) -> Tensor:
    """The mean label-smoothed loss of all labels, and 0.7 times the mean over linked target pieces."""
    losses, guided = [], []
    for index in sentences:
        source_ids, target_ids = store.source(index).tolist(), store.target(index).tolist()
        source, target = Packed.from_sentences([[*source_ids, EOS]]), Packed.from_sentences([[BOS, *target_ids]])
        logits, labels = model.logits(model(source, target)), torch.tensor([*target_ids, EOS])
        losses.append(F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="none"))
        attention = model.attention(source, target)[0].cross[0, 0][1:]
        links = store.gather(NAME, np.array([index]), 1000)[0].reshape(-1, 2).tolist()
        for piece in {said for said, _ in links}:
            linked = [read for said, read in links if said == piece]
            guided.append(-torch.stack([attention[piece, read].log() for read in linked]).mean())
    return torch.cat(losses).mean() + (0.7 * torch.stack(guided).mean() if guided else 0)


def sentences_of(store: PairStore, count: int) -> list[list[int]]:
    lengths = store.pair_lengths
    plan = plan_epoch(lengths, Batching(TRAINING.batch_tokens, seed=1), epoch=0)
    return [plan[index].tolist() for index in range(count)]


@pytest.mark.parametrize(("parallel", "device_tokens", "placement"), [(1, 0, "pre"), (2, 30, "post")])
def test_updates_equal_a_plain_training_loop(
    store: PairStore, parallel: int, device_tokens: int, placement: str
) -> None:
    config = replace(TRAINING, device_tokens=device_tokens, guided_weight=0.7)
    model = replace(MODEL, norm_placement=placement)
    torch.manual_seed(3)
    built = build_model(model, VOCABULARY, VOCABULARY).double()
    ours = Trainer(built, config, CPU, seed=1, parallel=parallel)
    plain = build_model(model, VOCABULARY, VOCABULARY).double()
    plain.load_state_dict(ours.model.state_dict())
    adam = torch.optim.Adam(plain.parameters(), betas=(0.9, 0.98), eps=1e-5)
    stream = batches(store, device_tokens)
    for step, sentences in enumerate(sentences_of(store, 4), start=1):
        ours.update(next(stream))
        adam.param_groups[0]["lr"] = learning_rate(step, config, MODEL.d_model)
        adam.zero_grad()
        plain_loss(plain, store, sentences).backward()
        adam.step()
        for name, value in plain.state_dict().items():
            # the weights of links are float32
            torch.testing.assert_close(ours.model.state_dict()[name], value, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize(("devices", "shapes"), [(2, CPU_SHAPES), (5, CPU_SHAPES), (1, GPU_SHAPES)])
def test_the_gradient_does_not_depend_on_devices_and_filler(store: PairStore, devices: int, shapes: Shapes) -> None:
    torch.manual_seed(2)
    model = build_model(MODEL, VOCABULARY, VOCABULARY).double()
    objective = Objective(model, 0.1, guided_weight=0.7)
    streams = [batches(store, 20, rank, devices, shapes) for rank in range(devices)]
    parameters = list(model.parameters())
    for sentences in sentences_of(store, 4):
        expected = torch.autograd.grad(plain_loss(model, store, sentences), parameters)
        shares = [next(stream) for stream in streams]
        losses = [objective(each).smoothed / share.target_tokens for share in shares for each in share.micro_batches]
        found = torch.autograd.grad(torch.stack(losses).sum(), parameters)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)
