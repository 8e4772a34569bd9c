"""The memory that a run needs on each of its devices."""

import math
from dataclasses import dataclass

from nmt.config.choices import find
from nmt.config.schema import Config
from nmt.estimate.cost import passes_per_batch
from nmt.estimate.memory import ActivationStorage, Memory, state_numbers, training_memory
from nmt.estimate.memory_need import MemoryNeed, divided_memory, memory_need, validation_bytes
from nmt.estimate.parameters import ParameterCounts


def micro_batches(config: Config, devices: int) -> tuple[int, int]:
    """Return the micro-batches of each device per step, and the source tokens of each."""
    batch, limit = config.training.batch_tokens, config.training.device_tokens
    accumulation = math.ceil(batch / (devices * limit)) if limit else 1
    return accumulation, math.ceil(batch / (devices * accumulation))


def divides_weights(config: Config) -> bool:
    """Return whether the devices divide the weights between them."""
    return bool(find("runtime.shard", config.runtime.shard).divides_weights)


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The memory of a run, by the number of its devices and the length of its sentences."""

    config: Config
    size: ParameterCounts
    target_words: int
    storage: ActivationStorage

    def per_device(self, devices: int, sentence_length: int) -> Memory:
        """Return the memory per device; the length of the sentences matters if attention pads them."""
        tokens = micro_batches(self.config, devices)[1]
        if self._is_divided_between(devices):
            return self._divided(self._whole(tokens, sentence_length), devices)
        shards = devices if self.config.training.shard_optimizer else 1
        return self._whole(tokens, sentence_length, shards)

    def need(self, devices: int, longest: int, available: float) -> MemoryNeed:
        """Return what the run needs of devices with this much memory, with batches of the longest sentences."""

        def divided(count: int) -> int:
            whole = self._whole(micro_batches(self.config, count)[1], longest)
            return max(self._divided(whole, count).total, validation_bytes(whole, self.size, count))

        used = divided(devices) if self._is_divided_between(devices) else self.per_device(devices, longest).total
        return memory_need(available, used, self._whole(longest, longest).total, divided)

    def _is_divided_between(self, devices: int) -> bool:
        return divides_weights(self.config) and devices > 1

    def _divided(self, whole: Memory, devices: int) -> Memory:
        return divided_memory(whole, self.config.model, self.size, self.storage, devices)

    def _whole(self, device_batch: int, sentence_length: int, shards: int = 1) -> Memory:
        """Return that of a device with a whole copy of the model, of whose averages it may keep one of the shards."""
        training = self.config.training
        tokens, state = passes_per_batch(training) * device_batch, state_numbers(training, self.size, shards)
        words, storage = self.target_words, self.storage
        return training_memory(
            self.config.model, self.size.total, words, tokens, tokens, sentence_length, storage, state=state
        )
