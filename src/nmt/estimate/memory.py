"""The memory of a training step, by formula: what forward saves for backward, tensor by tensor, in `nmt.model`."""

import math
from typing import NamedTuple

from nmt.config.model import DECODER_ONLY, ModelConfig
from nmt.config.registry import load
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.estimate.parameters import ParameterCounts, passes_per_batch
from nmt.model.activations import activation_of
from nmt.model.backends.eager import LOGITS_PER_CHUNK, LOGITS_PER_GPU_CHUNK
from nmt.model.build import needs_padded_attention
from nmt.model.positions import positions_of

FLOAT32_BYTES = 4
GATHERED_LAYERS = 2
"""Layers whose weights a device holds at a time if the devices divide them: the one that it computes, and the next."""


class Memory(NamedTuple):
    """Bytes on one device, by purpose."""

    parameters: int
    """The weights, and their copies in the precision of matrix products if that is lower."""
    gradients: int
    optimizer: int
    """The running means of the optimizer, and a moving average of the weights."""
    activations: int
    """What forward saves for backward, and temporary tensors of both."""
    process: int
    """Python, torch and the device's libraries before a model exists."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


class Storage(NamedTuple):
    """How a device computes, which decides what forward saves."""

    gpu: bool
    half: bool
    """Whether streams have 16 bits."""
    fused: bool = True
    """Whether the operations of `nmt.model.kernels` compute."""
    least: bool = False
    """Whether to count only what is in use, and not what free blocks add to it."""

    @property
    def width(self) -> int:
        """Bytes per number of a stream."""
        return 2 if self.half else FLOAT32_BYTES

    @property
    def padded(self) -> bool:
        """Whether attention multiplies padded blocks: GPUs have other attention in 16 bits only."""
        return not self.half if self.gpu else not self.fused

    @property
    def mask(self) -> int:
        """Bytes per coordinate of a dropout mask: random numbers of 16 bits in C, torch's own on GPUs."""
        return 1 if self.gpu else 2

    @property
    def slack(self) -> float:
        """Bytes held per byte in use, as measured: free blocks only partly fit later requests."""
        return 1.0 if self.least else 1.05 if self.gpu else 1.4

    def logits(self, count: int) -> int:
        """Return the bytes of the loss's scores of words; a CPU also holds them in float32."""
        held = min(count, LOGITS_PER_GPU_CHUNK if self.gpu else LOGITS_PER_CHUNK)
        return held * (self.width if self.gpu else 2 * FLOAT32_BYTES)


def training_memory(
    config: ModelConfig, parameters: int, vocabulary: int, tokens: tuple[int, int], length: int, on: Storage, state: int
) -> Memory:
    """Estimate the memory of a step.

    Args:
        config: Settings of the model.
        parameters: Number of its parameters.
        vocabulary: Words of the target vocabulary.
        tokens: Source and target tokens of a micro-batch.
        length: Typical number of tokens of a sentence, which matters if attention pads sentences.
        on: How the device computes.
        state: Numbers that the optimizer keeps, see `state_numbers`.
    """
    source, target = tokens
    widest = max(tokens)
    if config.architecture == DECODER_ONLY:
        widest = source + target
        saved = config.decoder_depth * widest * _layer(config, 2 * length, on)
    else:
        layer, cross = _layer(config, length, on), _cross_attention(config, length, on)
        saved = config.encoder_depth * source * layer
        saved += config.decoder_depth * (target * (layer + cross) + source * _keys_values(config, on))
    activations = (
        saved
        + (source + target) * config.d_model * (on.mask if config.dropout else 0)
        + widest * on.width * (2 * config.d_ff + 3 * config.d_model)  # gradients inside a layer, and of the stream
        + 2 * FLOAT32_BYTES * vocabulary * config.d_model  # the projection's gradient, before and after scaling
        + on.logits(target * vocabulary)
    )
    copies = on.width if on.half else 0
    return Memory(
        parameters=(FLOAT32_BYTES + copies) * parameters,
        gradients=FLOAT32_BYTES * parameters,
        optimizer=FLOAT32_BYTES * state,
        activations=round(on.slack * activations),
        process=600_000_000 if on.gpu else 320_000_000,
    )


def _layer(config: ModelConfig, keys: int, on: Storage) -> int:
    """Return the bytes per token that self-attention and feed-forward save."""
    padded = on.padded or needs_padded_attention(config)
    attention = _query(config, keys, on, padded=padded) + positions_of(config).bias_saved_numbers() * FLOAT32_BYTES
    attention += 0 if padded else _keys_values(config, on)
    if positions_of(config).rotates:  # the values keep the product that queries and keys were rotated from
        attention += (config.heads + config.key_value_heads) * config.key_size * on.width
    dropped = on.width + on.mask if config.activation_dropout else 0
    feed_forward = (activation_of(config).saved_tensors * on.width + dropped) * config.d_ff
    return attention + feed_forward + 2 * _residual(config, on)


def _cross_attention(config: ModelConfig, keys: int, on: Storage) -> int:
    """Return the bytes per target token that cross-attention saves, without the keys and values of the source."""
    padded = on.padded or config.attention_dropout > 0
    return _query(config, keys, on, padded=padded) + _residual(config, on)


def _query(config: ModelConfig, keys: int, on: Storage, *, padded: bool) -> int:
    """Return the bytes per query: itself and the mixed values; in padded blocks float32, its weights and a key."""
    if not padded:
        return config.heads * (config.key_size + config.value_size) * on.width
    weights = keys * (3 if config.attention_dropout else 1)  # before and after dropout, and the mask
    numbers = 2 * config.key_size + config.value_size + weights
    return config.heads * (config.value_size * on.width + numbers * FLOAT32_BYTES)


def _keys_values(config: ModelConfig, on: Storage) -> int:
    return config.key_value_heads * (config.key_size + config.value_size) * on.width


def _residual(config: ModelConfig, on: Storage) -> int:
    """Return the bytes per token: a sub-layer's input and output, or with pre-norm the sum and its norm; the mask."""
    drawn_again = on.gpu and on.fused
    mask = on.mask if config.dropout and not drawn_again else 0
    # PyTorch's RMSNorm saves its input and a step in float32
    read = on.width if config.norm == "layer" or drawn_again else 2 * FLOAT32_BYTES
    return config.d_model * (on.width + read + mask)


def run_memory(config: Config, size: ParameterCounts, words: int, devices: int, length: int, on: Storage) -> Memory:
    """Estimate the memory of a run per device; see `training_memory`."""
    training, divided = config.training, divides_weights(config) and devices > 1
    tokens = passes_per_batch(training) * micro_batches(config, devices)[1]
    state = state_numbers(training, size, devices if training.shard_optimizer else 1)
    memory = training_memory(config.model, size.total, words, (tokens, tokens), length, on, state)
    return _divided(memory, config.model, size, on, devices) if divided else memory


def micro_batches(config: Config, devices: int) -> tuple[int, int]:
    """Return the micro-batches of each device per step, and the source tokens of each."""
    batch, limit = config.training.batch_tokens, config.training.device_tokens
    accumulation = math.ceil(batch / (devices * limit)) if limit else 1
    return accumulation, math.ceil(batch / (devices * accumulation))


def divides_weights(config: Config) -> bool:
    """Return whether the devices divide the weights between them."""
    return bool(load("runtime.shard", config.runtime.shard).divides_weights)


def state_numbers(training: TrainingConfig, size: ParameterCounts, shards: int = 1) -> int:
    """Return how many numbers the optimizer and a moving average keep on each device.

    Adam keeps two per parameter, which `shards` devices may divide between them. Muon keeps one per weight of a layer.
    """
    means = 2 * size.total - (training.optimizer == "muon") * (size.encoder + size.decoder)
    moving_average = size.total if training.ema else 0
    return -(-means // shards) + moving_average


def _divided(whole: Memory, config: ModelConfig, size: ParameterCounts, on: Storage, devices: int) -> Memory:
    """Return the memory per device if devices divide weights, gradients and averages.

    A device also holds gathered weights in the precision of training: those outside of layers with their gradient, two
    layers, and the gradient of one. Gradients are added up in float32, those of a layer at a time.
    """
    layer = max(math.ceil(size.encoder / config.encoder_depth), math.ceil(size.decoder / config.decoder_depth))
    part = math.ceil(FLOAT32_BYTES * size.total / devices)
    added_up = FLOAT32_BYTES * max(layer, size.embedding)
    return whole._replace(
        parameters=part + on.width * (size.embedding + GATHERED_LAYERS * layer),
        gradients=part + on.width * (size.embedding + layer) + added_up,
        optimizer=math.ceil(whole.optimizer / devices),
    )
