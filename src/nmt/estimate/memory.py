"""The memory of a training step, by formula: what forward saves for backward, tensor by tensor, in `nmt.model`."""

import math
from typing import NamedTuple

from nmt.config.model import DECODER_ONLY, ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.estimate.parameters import ParameterCounts
from nmt.model.activations import activation_of
from nmt.model.backends.eager import LOGITS_PER_CHUNK, LOGITS_PER_GPU_CHUNK
from nmt.model.build import needs_padded_attention
from nmt.model.positions import MAX_DISTANCE, positions_of

FLOAT32_BYTES = 4
GATHERED_LAYERS = 2
"""Layers whose weights a device holds at a time if the devices divide them: the one that it computes, and the next."""


class Memory(NamedTuple):
    """Bytes on one device, by purpose."""

    parameters: int
    """The weights, and their copies in the precision of matrix products if that is lower."""
    gradients: int
    optimizer: int
    """The running means of the optimizer."""
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
    def mask(self) -> int:
        """Bytes per coordinate of a dropout mask: random numbers of 16 bits in C, torch's own on GPUs."""
        return 1 if self.gpu else 2


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
        saved = config.decoder_depth * widest * _saved_bytes(config, 2 * length, on)[0]
    else:
        layer, cross, keys_values = _saved_bytes(config, length, on)
        saved = config.encoder_depth * source * layer
        saved += config.decoder_depth * (target * (layer + cross) + source * keys_values)
    saved += (source + target) * config.d_model * (on.mask if config.dropout else 0)
    # gradients inside a layer, and of the stream; the projection's gradient, before and after scaling; logits
    temporary = widest * on.width * (2 * config.d_ff + 3 * config.d_model)
    temporary += 2 * FLOAT32_BYTES * vocabulary * config.d_model
    logits = min(target * vocabulary, LOGITS_PER_GPU_CHUNK if on.gpu else LOGITS_PER_CHUNK)
    temporary += logits * (on.width if on.gpu else 2 * FLOAT32_BYTES)  # a CPU also holds them in float32
    slack = 1.0 if on.least else 1.05 if on.gpu else 1.4  # measured: free blocks only partly fit later requests
    return Memory(
        parameters=(FLOAT32_BYTES + (on.width if on.half else 0)) * parameters,
        gradients=FLOAT32_BYTES * parameters,
        optimizer=FLOAT32_BYTES * state,
        activations=round(slack * (saved + temporary)),
        process=600_000_000 if on.gpu else 320_000_000,
    )


def _saved_bytes(config: ModelConfig, keys: int, on: Storage) -> tuple[int, int, int]:
    """Return the bytes per token that forward saves in a layer if each query has this many keys.

    They are those of self-attention and feed-forward, of cross-attention per target token, and of keys and values.
    """
    heads, positions, width = config.heads, positions_of(config), on.width
    query = heads * (config.key_size + config.value_size) * width
    keys_values = config.key_value_heads * (config.key_size + config.value_size) * width
    # in padded blocks a query, its weights (before and after dropout, and the mask) and a key have 32 bits
    weights = keys * (3 if config.attention_dropout else 1)
    in_block = 2 * config.key_size + config.value_size + weights
    padded_query = heads * (config.value_size * width + in_block * FLOAT32_BYTES)
    # GPUs have other attention than in padded blocks in 16 bits only
    padded = not on.half if on.gpu else not on.fused

    attention = padded_query if padded or needs_padded_attention(config) else query + keys_values
    if config.positions == "relative":  # the queries, and their products with all vectors
        attention += heads * (config.key_size + 2 * MAX_DISTANCE + 1) * FLOAT32_BYTES
    if positions.rotates:  # the values keep the product that queries and keys were rotated from
        attention += (heads + config.key_value_heads) * config.key_size * width
    dropped = width + on.mask if config.activation_dropout else 0
    feed_forward = (activation_of(config).saved_tensors * width + dropped) * config.d_ff
    # a residual connection saves the input and output of its sub-layer, or with pre-norm the sum and its norm
    drawn_again = on.gpu and on.fused
    mask = on.mask if config.dropout and not drawn_again else 0
    read = width if config.norm == "layer" or drawn_again else 2 * FLOAT32_BYTES  # PyTorch's RMSNorm saves float32
    residual = config.d_model * (width + read + mask)
    cross = padded_query if padded or config.attention_dropout > 0 else query
    return attention + feed_forward + 2 * residual, cross + residual, keys_values


def run_memory(
    config: Config, size: ParameterCounts, words: int, tokens: int, length: int, on: Storage, devices: int
) -> Memory:
    """Estimate the memory of a run per device, of which each takes `tokens` per side; see `training_memory`.

    If the devices divide weights, gradients and averages, each also holds gathered weights in the precision of
    training: those outside of layers with their gradient, two layers, and the gradient of one. Gradients are added up
    in float32, those of a layer at a time.
    """
    training, model = config.training, config.model
    state = state_numbers(training, size)
    whole = training_memory(model, size.total, words, (tokens, tokens), length, on, state)
    if devices == 1 or config.runtime.shard != "weights":
        return whole
    layer = max(math.ceil(size.encoder / model.encoder_depth), math.ceil(size.decoder / model.decoder_depth))
    part = math.ceil(FLOAT32_BYTES * size.total / devices)
    added_up = FLOAT32_BYTES * max(layer, size.embedding)
    return whole._replace(
        parameters=part + on.width * (size.embedding + GATHERED_LAYERS * layer),
        gradients=part + on.width * (size.embedding + layer) + added_up,
        optimizer=math.ceil(whole.optimizer / devices),
    )


def state_numbers(training: TrainingConfig, size: ParameterCounts) -> int:
    """Return how many numbers the optimizer keeps.

    Adam keeps two per parameter, Muon one per weight of a layer.
    """
    return 2 * size.total - (training.optimizer == "muon") * (size.encoder + size.decoder)
