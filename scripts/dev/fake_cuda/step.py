"""Run updates of the real trainer on a fake device, and count the operations of one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from triton.runtime.jit import JITFunction

from fake_cuda.counting import Counter, attend, launch
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.config.tree import Config
from nmt.data.batches import Batching, plan_epoch, split_batch
from nmt.data.loader import DataPosition, GlobalBatch, assemble
from nmt.data.shapes import Shapes
from nmt.model.backends import cuda, triton
from nmt.training.build import build_trainer
from shared.synthetic import synthetic_pairs

HOPPER = (9, 0)
"""The compute capability of an H100."""
PROPERTIES = SimpleNamespace(total_memory=int(80e9), major=HOPPER[0], minor=HOPPER[1], multi_processor_count=132)
ANSWERS = {
    "is_available": True, "is_initialized": True, "is_bf16_supported": True, "device_count": 1, "current_device": 0,
    "get_device_capability": HOPPER, "get_device_properties": PROPERTIES, "_lazy_init": None, "set_device": None,
    "synchronize": None, "get_rng_state": None, "set_rng_state": None, "manual_seed_all": None,
}  # fmt: skip
"""What functions of torch.cuda return here."""


@contextmanager
def fake_cuda() -> Iterator[FakeTensorMode]:
    """Make torch report one CUDA device, and let all tensors be fake, in this block."""
    fakes = {name: mock.Mock(return_value=answer) for name, answer in ANSWERS.items()}
    # autograd runs the backward pass of CUDA tensors in a thread, in which modes of this thread are not active
    with (
        mock.patch.multiple(torch.cuda, **fakes),
        mock.patch.object(cuda, "has_triton", return_value=True),
        mock.patch.object(triton.Triton, "try_out"),  # nothing can be compiled for this device
        mock.patch.object(JITFunction, "run", launch),
        mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", attend),
        torch.autograd.set_multithreading_enabled(False),
        FakeTensorMode(allow_non_fake_inputs=True) as mode,
    ):
        yield mode


def count_step(overrides: Sequence[str]) -> dict[str, Any]:
    """Count the second update of a run: the first one allocates the optimizer's averages."""
    config, counter = compose(list(overrides)), Counter()
    words = config.tokenizer.vocab_size
    with fake_cuda() as mode:
        config = replace(config, runtime=replace(config.runtime, cuda_graphs=False))  # which it cannot record
        machine = prepare_machine(config.runtime)
        # modules cannot move fake parameters, so these are created where they belong
        with machine.device, mock.patch.object(nn.Module, "to", lambda module, *_: module):
            trainer = build_trainer(config, machine, (words, words))
        with unset_fake_temporarily():
            real_batch = median_batch(config, trainer.shapes(config.training.device_tokens))
        batch = real_batch._replace(micro_batches=[_fake(mode, each) for each in real_batch.micro_batches])
        trainer.update(batch)
        with mock.patch.object(torch.cuda, "synchronize", counter.count_wait), counter:
            trainer.update(batch)
    return counter.total


def median_batch(config: Config, shapes: Shapes) -> GlobalBatch:
    """Return the batch whose mean length is the median, of a text of random words with equal lengths on both sides."""
    words, training = config.tokenizer.vocab_size, config.training
    store = synthetic_pairs(words, words, seed=config.seed, ratio_sigma=0.0)
    lengths = store.pair_lengths
    plan = plan_epoch(lengths, Batching(training.batch_tokens, config.seed), epoch=0)
    means = [float(lengths.target[plan[index]].mean()) for index in range(len(plan))]
    sentences = plan[int(np.argsort(means)[len(means) // 2])]
    micro_batches = split_batch(sentences, lengths, 1, training.device_tokens)
    count = int(lengths.target[sentences].sum())
    assembled = [assemble(store, each, shapes=shapes) for each in micro_batches]
    return GlobalBatch(assembled, count, 2 * count, DataPosition())


def _fake(mode: FakeTensorMode, value: Any) -> Any:
    """Replace all tensors of a dataclass by fake ones."""
    if isinstance(value, Tensor):
        return mode.from_tensor(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _fake(mode, getattr(value, each.name)) for each in fields(value)})
    return value
