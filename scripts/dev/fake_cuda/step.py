"""Run updates of the real trainer and steps of beam search on a fake device, and count the operations of one."""

from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from functools import partial
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
from nmt.decoding import device_beam
from nmt.decoding.beam import most_probable
from nmt.model.backends.chosen import choose
from nmt.model.build import build_model
from nmt.model.packed import Packed
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


def count_decoding(overrides: Sequence[str], sentences: int = 256, steps: int = 32) -> dict[str, Any]:
    """Count a step of beam search for sentences of as many tokens, on average over all steps."""
    config, counter = compose(list(overrides)), Counter()
    beam, words = config.decoding.beam, config.tokenizer.vocab_size
    with fake_cuda() as mode, torch.no_grad():
        machine = prepare_machine(config.runtime)
        choose(machine, kernels=config.runtime.kernels, trains=False)
        torch.set_default_dtype(machine.precision)
        with machine.device:
            model = build_model(config.model, words, words).eval()
        torch.set_default_dtype(torch.float32)
        with unset_fake_temporarily():
            lengths = torch.full((sentences,), steps)
            source = Packed.from_lengths(torch.zeros(sentences * steps, dtype=torch.int64), lengths)
        cache = model.start(_fake(mode, source).to(machine.device))
        scorer, most = partial(model.advance, state=cache), partial(most_probable, beam=beam)
        with counter, mock.patch.object(Tensor, "cpu", _read), mock.patch.object(device_beam, "_read_back"):
            device_beam.search_on_device(
                scorer, most, cache.keep, [steps] * sentences, machine.device, beam=beam, alpha=0.6, nbest=1
            )
    return {name: total / steps for name, total in asdict(counter.total).items()}


def _read(values: Tensor) -> Tensor:
    """Read zeros from the device."""
    shape = values.to("cpu").shape
    with unset_fake_temporarily():
        return torch.zeros(shape, dtype=values.dtype)


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
