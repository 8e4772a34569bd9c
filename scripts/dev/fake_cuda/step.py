"""Run updates of the real trainer on a fake device, and count the operations of one."""

from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from fake_cuda.counting import Counter
from fake_cuda.device import fake_cuda
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.config.tree import Config
from nmt.data.loader import GlobalBatch
from nmt.training.build import build_trainer
from nmt.training.trainer import Trainer
from shared.synthetic import SyntheticText


def fake_trainer(config: Config) -> Trainer:
    """Return the trainer of these settings on the fake device, which cannot record graphs."""
    config = replace(config, runtime=replace(config.runtime, cuda_graphs=False))
    words = config.tokenizer.vocab_size
    machine = prepare_machine(config.runtime)
    # modules cannot move fake parameters, so these are created where they belong
    with machine.device, mock.patch.object(nn.Module, "to", lambda module, *_: module):
        return build_trainer(config, machine, (words, words))


def count_step(overrides: Sequence[str]) -> dict[str, Any]:
    """Count the second update of a run: the first one allocates the optimizer's averages."""
    config, counter = compose(list(overrides)), Counter()
    training = config.training
    with fake_cuda() as mode:
        trainer = fake_trainer(config)
        with unset_fake_temporarily():
            words, tokens = config.tokenizer.vocab_size, training.batch_tokens
            text = SyntheticText(words, tokens, training.device_tokens, config.seed)
            real_batch = text.step(text.median_batch(), trainer.shapes(training.device_tokens))
        batch = fake_batch(mode, real_batch)
        trainer.update(batch)
        with mock.patch.object(torch.cuda, "synchronize", counter.count_wait), counter:
            trainer.update(batch)
    return asdict(counter.total)


def fake_batch(mode: FakeTensorMode, batch: GlobalBatch) -> GlobalBatch:
    """Return a global batch whose tensors are fake, on the CPU."""
    return batch._replace(micro_batches=[_fake(mode, each) for each in batch.micro_batches])


def _fake(mode: FakeTensorMode, value: Any) -> Any:
    """Replace all tensors of a dataclass by fake ones."""
    if isinstance(value, Tensor):
        return mode.from_tensor(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _fake(mode, getattr(value, each.name)) for each in fields(value)})
    return value
