"""Train with candidate settings, to time them and to compare what they compute."""

import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice

import torch

from nmt.compute.cores import computing_threads
from nmt.compute.machine import prepare_machine
from nmt.compute.time_limit import time_limit
from nmt.config.checks import COMPARES_DROPOUT, DROPS, marked
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.data.batching import Batching
from nmt.data.loader import DataPosition, GlobalBatch, global_batches
from nmt.data.micro_batch_size import full_micro_batch_tokens
from nmt.data.shapes import Shapes
from nmt.data.store import Pairs
from nmt.measuring.choices import TUNABLE, Situation
from nmt.measuring.search import Check, Settings, Value
from nmt.measuring.steps import free_memory, update, wait
from nmt.model.attention_plan import PLAN_PADDED
from nmt.training.concurrency import concurrency_of
from nmt.training.graph_shapes import RECORDED_AT
from nmt.training.new_trainer import new_trainer
from nmt.training.trainer import Trainer

BATCHES = 3
"""Different global batches that a contender trains on in turn."""
CHECK_TOKENS = 1024
"""Most source tokens, and most target tokens, of the batch on which losses are compared."""
RECOMPILE_LIMIT = 64
"""Versions of a compiled function that PyTorch keeps before it gives up compiling: each contender needs its own."""


class TrainingBench:
    """Builds trainers with candidate settings for the model and the data of a run."""

    def __init__(self, config: Config, text: Pairs, vocabularies: tuple[int, int], devices: int = 1) -> None:
        """Measure the run of `config`, which shares each global batch between `devices`, on one of them."""
        # the optimizer's first step would import it, and a time limit that ends the import would leave half of it
        import_module("torch._dynamo")
        self.config, self.text, self.vocabularies, self.devices = config, text, vocabularies, devices
        self.batch_tokens = config.training.batch_tokens
        """Most source tokens, and most target tokens, of the global batches to time."""

    def fit_batch(self, seconds_per_step: float, limit: float) -> None:
        """Time smaller batches if a step of the whole batch would take longer than this.

        If the default settings fail, or find no answer within the limit, batches are small; the search reports why.
        """
        whole = self.batch_tokens
        self.batch_tokens = small = min(CHECK_TOKENS, whole)
        try:
            with time_limit(limit):
                contender = self.open({})
                seconds = min(contender.step(number) for number in range(BATCHES))
        except Exception:
            return
        contender.close()
        self.batch_tokens = whole
        while self.batch_tokens >= 2 * small and seconds * self.batch_tokens / small > seconds_per_step:
            self.batch_tokens //= 2

    def candidates(self, setting: str, chosen: Settings) -> Sequence[Value]:
        """See `Workbench`."""
        return TUNABLE[setting].candidates(self.situation(chosen))

    def situation(self, chosen: Settings) -> Situation:
        """Return what the candidates of the next setting depend on."""
        config = with_values(self.config, chosen)
        machine = prepare_machine(config.runtime)
        share = -(-config.training.batch_tokens // self.devices)
        return Situation(
            precision=machine.precision_name,
            threads=config.runtime.threads or computing_threads(),
            parallel=concurrency_of(config.training, machine, config.runtime.parallel),
            share=share,
            compiled=bool(config.runtime.compile),
        )

    def open(self, settings: Settings) -> "TrainingContender":
        """See `Workbench`."""
        free_memory()
        if settings.get("runtime.compile"):
            torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
        return TrainingContender(self, with_values(self.config, settings))

    def batches(self, trainer: Trainer, batch_tokens: int) -> list[GlobalBatch]:
        """Return the same few global batches for every contender, divided as its trainer wants them."""
        tokens = full_micro_batch_tokens(batch_tokens, trainer.config.device_tokens, self.devices)
        padded = trainer.model.plan is PLAN_PADDED
        stream = global_batches(
            self.text,
            replace(Batching.of(trainer.config, self.config.seed), tokens=batch_tokens),
            device_tokens=trainer.config.device_tokens,
            start=DataPosition(),
            rank=0,
            devices=self.devices,
            threads=trainer.gradient.concurrency,
            shapes=Shapes.on(trainer.machine, trainer.model.config, tokens, padded=padded),
        )
        return list(islice(stream, BATCHES))


class TrainingContender:
    """A trainer with certain settings, warmed up."""

    def __init__(self, bench: TrainingBench, config: Config) -> None:
        self._machine = prepare_machine(config.runtime)
        self._threads = torch.get_num_threads()
        self.check = self._check(bench, config)
        self._trainer: Trainer | None = new_trainer(config, self._machine, *bench.vocabularies)
        self._batches = bench.batches(self._trainer, bench.batch_tokens)
        rounds = 1 if self._machine.device.type == "cpu" else RECORDED_AT + 1
        for number in range(rounds * len(self._batches)):
            self.step(number)

    def _check(self, bench: TrainingBench, config: Config) -> Check:
        """Make one update without dropout, whose masks depend on how the batch is divided and compiled."""
        compared = [f"training.{name}" for name in marked(config.training, COMPARES_DROPOUT)]
        dropped = [f"model.{name}" for name in marked(config.model, DROPS)]
        without = with_values(config, dict.fromkeys([*compared, *dropped], 0.0))
        trainer = new_trainer(without, self._machine, *bench.vocabularies)
        batch = bench.batches(trainer, min(CHECK_TOKENS, bench.batch_tokens))[0]
        update(trainer, batch)
        return Check(trainer.take_statistics().loss, float(trainer.gradient_norm), self._machine.precision_name)

    def step(self, round_: int) -> float:
        """See `Contender`."""
        assert self._trainer is not None
        torch.set_num_threads(self._threads)
        batch = self._batches[round_ % len(self._batches)]
        wait(self._machine.device)
        started = time.perf_counter()
        self._trainer.update(batch)
        wait(self._machine.device)
        return time.perf_counter() - started

    def tokens(self, round_: int) -> int:
        """See `Contender`."""
        return self._batches[round_ % len(self._batches)].tokens

    def close(self) -> None:
        """See `Contender`."""
        self._trainer = None
        free_memory()
