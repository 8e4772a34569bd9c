"""The sizes of a micro-batch's tensors, rounded up so that a device sees few different ones.

A compiled model, and the library of matrix products of a CPU, prepare themselves for each new size. So a stream is
filled up with filler: short sentences of padding that the loss ignores.
"""

from dataclasses import dataclass

import numpy as np

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.batches import IntArray
from nmt.model.backends.cuda import has_flash_attention
from nmt.model.build import needs_padded_attention
from nmt.model.interface import TranslationModel

TOKEN_MULTIPLE = 32
"""Streams are filled up to a multiple of this many tokens on a CPU.

CPU matrix products set up a kernel for every number of rows not seen before, which can take longer than the product.
"""
GPU_TOKEN_MULTIPLE = 64
"""The same on a GPU, whose matrix products work on tiles of 64 or 128 rows."""
GPU_TOKEN_STEPS = 24
"""Sizes of streams on a GPU differ by at least about this share of a full micro-batch."""
MIN_LONGEST, MIN_SENTENCES = 32, 8
"""The smallest sizes if `Shapes.buckets` is set."""
ROOM_TO_GROW = 1.25
"""How many times as long as planned a micro-batch may become, when its text is changed, before it is split.

BPE-dropout of 0.1 makes sentences about 15% longer.
"""


@dataclass(frozen=True, slots=True)
class Shapes:
    """The sizes that micro-batches may have; by default those for a CPU."""

    full_tokens: int = 0
    """The size of a full stream."""
    token_step: int = TOKEN_MULTIPLE
    """Other sizes differ from that of a full stream by a multiple of this."""
    buckets: bool = False
    """Whether the number of sentences and the length of the longest are rounded up as well.

    Flash attention skips the sentences without tokens that are added for it. Padded attention would compute them.
    """

    @classmethod
    def on(cls, machine: Machine, model: ModelConfig, tokens: int) -> "Shapes":
        """Return the shapes of micro-batches of at most about `tokens` source and target tokens."""
        if machine.device.type != "cuda":
            return cls()
        padded = needs_padded_attention(model) or not has_flash_attention(machine.device, machine.precision)
        full = _round_up(tokens, GPU_TOKEN_MULTIPLE)
        step = full // GPU_TOKEN_STEPS // GPU_TOKEN_MULTIPLE * GPU_TOKEN_MULTIPLE
        return cls(full, max(step, GPU_TOKEN_MULTIPLE), buckets=not padded)

    def tokens(self, count: int) -> int:
        """Return the size of a stream of `count` tokens."""
        return self.full_tokens + _round_up(count - self.full_tokens, self.token_step)

    def sentences(self, count: int) -> int:
        """Return how many sentences a stream of `count` sentences has, including those without tokens."""
        if not self.buckets:
            return count
        count = max(count, MIN_SENTENCES)
        return _round_up(count, 1 << (count.bit_length() - 2))  # powers of two, and 1.5 times these

    def longest(self, length: int) -> int:
        """Return a bound for the lengths of sentences of which the longest has `length` tokens."""
        return max(MIN_LONGEST, 1 << (length - 1).bit_length()) if self.buckets else length

    def filler(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
        """Return the lengths of the padding pairs that fill both streams.

        Args:
            source: The lengths of the real source sentences.
            target: The lengths of the real target sentences.
        """
        counts = [int(lengths.sum()) for lengths in (source, target)]
        missing = [self.tokens(count) - count for count in counts]
        if not any(missing):
            return source[:0], target[:0]
        tokens = [each or self.token_step for each in missing]  # each filler pair has tokens in both languages
        # no filler should be longer than the longest real sentence: padded attention would pad all sentences to its
        # length, and learned positions may end
        limits = [int(lengths.max()) for lengths in (source, target)]
        pairs = 0
        while pairs < (needed := max(-(-each // limit) for each, limit in zip(tokens, limits, strict=True))):
            pairs = needed
            tokens = [each + _round_up(max(0, pairs - each), self.token_step) for each in tokens]
            if not self.full_tokens:
                break  # a CPU has room for a few tokens more, and repeats the losses of earlier runs exactly
        of_source, of_target = (np.diff(np.arange(pairs + 1) * each // pairs) for each in tokens)
        return of_source, of_target


def micro_batch_shapes(model: TranslationModel, config: TrainingConfig, machine: Machine, device_tokens: int) -> Shapes:
    """Return the shapes of the micro-batches of a step, if each has at most `device_tokens`; 0 for no limit."""
    tokens = full_micro_batch_tokens(config.batch_tokens, device_tokens, distributed.world_size())
    return Shapes.on(machine, model.config, tokens)


def micro_batch_tokens(batch_tokens: int, device_tokens: int, devices: int) -> int:
    """Return the limit of source tokens, and of target tokens, for which a micro-batch is planned."""
    share = -(-batch_tokens // devices)
    return min(device_tokens or share, share)


def full_micro_batch_tokens(batch_tokens: int, device_tokens: int, devices: int) -> int:
    """Return about how many source or target tokens each of the equal micro-batches of a full global batch has."""
    share = -(-batch_tokens // devices)
    return -(-share // -(-share // micro_batch_tokens(batch_tokens, device_tokens, devices)))


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
