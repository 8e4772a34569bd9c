"""The gradient of a global batch: the sum over its micro-batches, computed in turn, in threads, or as CUDA graphs."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.workers import concurrent_workers, run_in_threads
from nmt.config.training import TrainingConfig
from nmt.data.loader import GlobalBatch, MicroBatch
from nmt.model.dropout import seed_thread_dropout, share_seed
from nmt.model.interface import trainable
from nmt.training.loss import Losses
from nmt.training.loss_scale import LossScale
from nmt.training.recorded_passes import RecordedPasses
from nmt.training.replicas import Replicas

MIN_MICRO_BATCH_TOKENS = 512
"""A micro-batch with fewer source or target tokens is not worth a thread with its own copy of the gradient."""


class BatchGradient:
    """Adds this process's part of the gradient of a global batch to those of the parameters."""

    def __init__(
        self,
        replicas: Replicas,
        machine: Machine,
        seed: int,
        parallel: int = 0,
        passes: RecordedPasses | None = None,
        loss_scale: LossScale | None = None,
    ) -> None:
        """Differentiate the objective of `replicas`, whose weights no longer move; see `Trainer`."""
        self.replicas, self.machine, self.seed = replicas, machine, seed
        self.model, self.objective = replicas.model, replicas.objective
        self.passes, self.loss_scale = passes, loss_scale
        self.concurrency = concurrency_of(replicas.config, machine, parallel)
        """The number of micro-batches computed in parallel."""
        self.dropout_seed = share_seed(self.model.modules(), machine.device)

    def add(self, batch: GlobalBatch, step: int) -> list[Losses]:
        """Add the gradients of this process's micro-batches in a step, and return their losses."""
        if self.concurrency > 1:
            return self._add_in_threads(batch, step)
        if self.passes is not None:
            self.passes.begin_step()
        losses = [self._add_one(batch, step, index) for index in range(len(batch.micro_batches))]
        if self.passes is not None:
            self.passes.end_step()
        return losses

    def try_out(self, batch: MicroBatch) -> None:
        """Run forward and backward on a micro-batch; in threads, as often as these run at the same time."""
        if self.concurrency > 1:
            run_in_threads(lambda _: self._of_one(batch, 1), range(self.concurrency), self.concurrency)
            return
        # inside the wrapper for several processes: if this compiles the model, the graph is split where gradients
        # are reduced
        with self.replicas.last_only(last=False):
            losses: Losses = self.objective(batch)
        losses.smoothed.backward()

    def _add_one(self, batch: GlobalBatch, step: int, index: int) -> Losses:
        """Add the gradient of a micro-batch."""
        micro_batch, set_seed = batch.micro_batches[index], partial(self._set_seed, self._seed_of(step, index))
        # gradients are averaged over the processes, but the loss of the global batch is a sum over them
        factor = distributed.world_size() / batch.target_tokens
        if self.passes is not None and (recorded := self.passes.run(micro_batch, factor, set_seed)) is not None:
            return Losses(*(each.clone() for each in recorded))
        set_seed()
        with self.replicas.last_only(last=index == len(batch.micro_batches) - 1):
            losses = self.objective(micro_batch.to(self.machine.device))
        self._scaled(losses.smoothed * factor).backward()
        return Losses(*(each.detach() for each in losses))

    def _add_in_threads(self, batch: GlobalBatch, step: int) -> list[Losses]:
        losses, parameters = [], trainable(self.model)
        for first in range(0, len(batch.micro_batches), self.concurrency):
            indices = range(first, min(first + self.concurrency, len(batch.micro_batches)))
            found = run_in_threads(partial(self._of_one_in_thread, batch, step), indices, len(indices))
            for each, gradients in found:
                losses.append(each)
                accumulate(gradients, parameters)
        return losses

    def _of_one_in_thread(self, batch: GlobalBatch, step: int, index: int) -> tuple[Losses, list[Tensor]]:
        seed_thread_dropout(self._seed_of(step, index))
        return self._of_one(batch.micro_batches[index], batch.target_tokens)

    def _of_one(self, batch: MicroBatch, target_tokens: int) -> tuple[Losses, list[Tensor]]:
        """Return the losses and gradients of a micro-batch without touching the accumulated gradient."""
        losses: Losses = self.objective(batch)
        gradients = torch.autograd.grad(self._scaled(losses.smoothed / target_tokens), trainable(self.model))
        return Losses(*(each.detach() for each in losses)), list(gradients)

    def _scaled(self, loss: Tensor) -> Tensor:
        return loss if self.loss_scale is None else loss * self.loss_scale.scale

    def _set_seed(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.dropout_seed.fill_(seed - (1 << 63))  # signed

    def _seed_of(self, step: int, index: int) -> int:
        """Return the seed of a micro-batch: it depends only on the position in training, so no state must be saved."""
        words = np.random.SeedSequence([self.seed, step, distributed.rank(), index]).generate_state(2)
        return int(words[0]) << 32 | int(words[1])


def concurrency_of(config: TrainingConfig, machine: Machine, parallel: int) -> int:
    """Return how many micro-batches a process computes in parallel: one, unless a single process trains on a CPU.

    `parallel` fixes the number on a CPU.
    """
    if machine.device.type != "cpu" or distributed.world_size() > 1:
        return 1
    return parallel or concurrent_workers(
        min(config.device_tokens or config.batch_tokens, config.batch_tokens) // MIN_MICRO_BATCH_TOKENS
    )


def accumulate(gradients: Sequence[Tensor], parameters: Sequence[nn.Parameter]) -> None:
    """Add gradients to those of the parameters; the order of the calls determines the last bits.

    A thread adds whole tensors: if threads share a small one, they wait for each other longer than the addition takes.
    """
    if parameters[0].grad is None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            # the fused optimizers need the strides of the parameter, and part of a wider matrix has others
            parameter.grad = gradient.contiguous()
        return
    sums = [parameter.grad for parameter in parameters if parameter.grad is not None]
    shares = concurrent_workers(len(sums))

    def add(first: int) -> None:
        torch._foreach_add_(sums[first::shares], list(gradients[first::shares]))

    run_in_threads(add, range(shares), shares)
