"""The memory of a training step, by formula: no model is built.

What forward saves for backward is counted tensor by tensor, as the modules of `nmt.model` save them.
"""

import math
from typing import NamedTuple

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.estimate.parameters import ParameterCounts, passes_per_batch
from nmt.model.activations import activation_of
from nmt.model.backends.eager import LOGITS_PER_CHUNK, LOGITS_PER_GPU_CHUNK
from nmt.model.build import architecture_of, needs_padded_attention
from nmt.model.interface import Stack
from nmt.model.positions.base import positions_of

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


class ActivationStorage(NamedTuple):
    """How a device stores what backward needs."""

    width: int
    """Bytes per number of the residual stream, and in the inputs and outputs of matrix products."""
    padded: bool
    """Whether attention multiplies padded blocks, as on a CPU, instead of being flash attention."""
    slack: float
    """Bytes held per byte in use, because free blocks of the heap only partly fit later requests."""
    process: int
    """Bytes before a model exists."""
    dropout_mask: int
    """Bytes per coordinate of a dropout mask."""
    recomputed: bool
    """Whether backward computes the dropout masks of residual connections again, as on a GPU with fused operations."""
    norm_width: int
    """Bytes per number of the input of a norm, unless that is fused with the residual connection."""
    scores: int
    """The most scores of words that the loss holds at a time."""
    score_width: int
    """Bytes per score: on a CPU, a score is also held in float32."""


def activation_storage(*, gpu: bool, half: bool, fused: bool = True) -> ActivationStorage:
    """Return how a GPU or a CPU stores activations, with matrix products in 16 or 32 bits.

    A GPU without bf16 does not run the `fused` operations.
    """
    width = 2 if half else FLOAT32_BYTES
    if gpu:
        return ActivationStorage(
            width,
            padded=not half,
            slack=1.05,
            process=600_000_000,
            dropout_mask=1,
            recomputed=fused,
            norm_width=FLOAT32_BYTES,
            scores=LOGITS_PER_GPU_CHUNK,
            score_width=width,
        )
    return ActivationStorage(
        width,
        padded=True,
        slack=1.4,
        process=320_000_000,
        dropout_mask=width,
        recomputed=False,
        norm_width=width,
        scores=LOGITS_PER_CHUNK,
        score_width=2 * FLOAT32_BYTES,
    )


def training_memory(
    config: ModelConfig,
    parameters: int,
    vocabulary: int,
    source_tokens: int,
    target_tokens: int,
    length: int,
    on: ActivationStorage,
    *,
    state: int | None = None,
) -> Memory:
    """Estimate the memory of a step.

    Args:
        config: Settings of the model.
        parameters: Number of its parameters.
        vocabulary: Words of the target vocabulary.
        source_tokens: Source tokens of a micro-batch.
        target_tokens: Target tokens of a micro-batch.
        length: Typical number of tokens of a sentence.
        on: How the device stores activations.
        state: Numbers that the optimizer keeps, see `state_numbers`; by default Adam's two per parameter.
    """
    stacks = architecture_of(config).stacks(config)
    activations = (
        (source_tokens + target_tokens) * _embedding(config, on)
        + sum(_stack(config, stack, source_tokens, target_tokens, length, on) for stack in stacks)
        + target_tokens * on.width * config.d_model  # the gradient of the last layer's output
        + _temporary(config, stacks, source_tokens, target_tokens, on)
        + 2 * FLOAT32_BYTES * vocabulary * config.d_model  # the projection's gradient, before and after scaling
        + min(target_tokens * vocabulary, on.scores) * on.score_width
    )
    copies = on.width * parameters if on.width < FLOAT32_BYTES else 0
    return Memory(
        parameters=FLOAT32_BYTES * parameters + copies,
        gradients=FLOAT32_BYTES * parameters,
        optimizer=FLOAT32_BYTES * (2 * parameters if state is None else state),
        activations=round(on.slack * activations),
        process=on.process,
    )


def run_memory(
    config: Config, size: ParameterCounts, words: int, devices: int, length: int, on: ActivationStorage
) -> Memory:
    """Estimate the memory of a run per device.

    Args:
        config: Settings of the run.
        size: Parameters of its model.
        words: Words of the target vocabulary.
        devices: The number of devices.
        length: Typical number of tokens of a sentence, which matters if attention pads sentences.
        on: How the device stores activations.
    """
    training, divided = config.training, divides_weights(config) and devices > 1
    tokens = passes_per_batch(training) * micro_batches(config, devices)[1]
    state = state_numbers(training, size, devices if training.shard_optimizer else 1)
    memory = training_memory(config.model, size.total, words, tokens, tokens, length, on, state=state)
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


def _divided(whole: Memory, config: ModelConfig, size: ParameterCounts, on: ActivationStorage, devices: int) -> Memory:
    """Return the memory per device if devices divide weights, gradients and averages.

    A device also holds gathered weights in the precision of training: those outside of layers with their gradient, two
    layers, and the gradient of one. Gradients are added up in float32, those of a layer at a time.
    """
    stacks, parts = architecture_of(config).stacks(config), {"encoder": size.encoder, "decoder": size.decoder}
    layer = max(math.ceil(parts[stack.part] / stack.layers) for stack in stacks)
    part = math.ceil(FLOAT32_BYTES * size.total / devices)
    added_up = FLOAT32_BYTES * max(layer, size.embedding)
    return whole._replace(
        parameters=part + on.width * (size.embedding + GATHERED_LAYERS * layer),
        gradients=part + on.width * (size.embedding + layer) + added_up,
        optimizer=math.ceil(whole.optimizer / devices),
    )


def _stack(
    config: ModelConfig, stack: Stack, source_tokens: int, target_tokens: int, length: int, on: ActivationStorage
) -> int:
    """Bytes that a stack of layers saves."""
    keys = length * (stack.reads_source + stack.reads_target)
    attention = _self_query(config, keys, on) + _key_value(config, on)
    layer = attention + _feed_forward(config, on) + 2 * _residual(config, on)
    cross = _query(config, length, on) + _residual(config, on) if stack.cross_attention else 0
    memory = _key_value(config, on)
    saved = _tokens(stack, source_tokens, target_tokens) * (layer + cross)
    return stack.layers * (saved + (source_tokens * memory if stack.cross_attention else 0))


def _tokens(stack: Stack, source_tokens: int, target_tokens: int) -> int:
    return stack.reads_source * source_tokens + stack.reads_target * target_tokens


def _embedding(config: ModelConfig, on: ActivationStorage) -> int:
    return config.d_model * on.dropout_mask if config.dropout else 0


def _residual(config: ModelConfig, on: ActivationStorage) -> int:
    """Bytes per token: the sub-layer's input, and what dropout and norm save."""
    fused = on.recomputed and config.norm == "layer" and config.norm_placement == "post"  # saves the sub-layer's output
    mask = 0 if on.recomputed or not config.dropout else on.dropout_mask
    return config.d_model * (on.width + (on.width if fused else on.norm_width) + mask)


def _self_query(config: ModelConfig, keys: int, on: ActivationStorage) -> int:
    """Bytes per query token of self-attention, for which flash attention may not suit the model."""
    weights_on = on._replace(padded=on.padded or needs_padded_attention(config))
    return _query(config, keys, weights_on) + positions_of(config).bias_saved_numbers() * FLOAT32_BYTES


def _query(config: ModelConfig, keys: int, on: ActivationStorage) -> int:
    """Bytes per query token: the query, its attention weights (flash: their normaliser only) and the attended value."""
    mask = on.dropout_mask if config.attention_dropout else 0
    padded = on.padded or config.attention_dropout > 0
    weights = config.heads * ((FLOAT32_BYTES + mask) * keys if padded else FLOAT32_BYTES)
    return config.heads * (config.key_size + config.value_size) * on.width + weights


def _key_value(config: ModelConfig, on: ActivationStorage) -> int:
    return config.heads * (config.key_size + config.value_size) * on.width


def _feed_forward(config: ModelConfig, on: ActivationStorage) -> int:
    dropped = on.width + on.dropout_mask if config.activation_dropout else 0
    return (activation_of(config).saved_tensors * on.width + dropped) * config.d_ff


def _temporary(
    config: ModelConfig,
    stacks: tuple[Stack, ...],
    source_tokens: int,
    target_tokens: int,
    on: ActivationStorage,
) -> int:
    """Bytes that backward needs at any moment: gradients of the stream and the encoder's output, and inside a layer."""
    tokens = max(_tokens(stack, source_tokens, target_tokens) for stack in stacks)
    layer = 2 * on.width * config.d_ff + 2 * on.width * config.d_model
    encoder_output = source_tokens * on.width * config.d_model
    return tokens * layer + (encoder_output if any(stack.cross_attention for stack in stacks) else 0)
