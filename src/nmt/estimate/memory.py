"""The memory that a step of training takes, by formula: no model is built.

What a step keeps from forward to backward is counted tensor by tensor, as the modules of this package save them.
"""

from typing import NamedTuple

from nmt.config.schema import ModelConfig

FULL = 4
"""Bytes of a float32."""
SLICE_BYTES = 8 * 8 * 1024 * 1024
"""The slice of scores that the loss holds at a time: in the precision of the products, and in float32."""
INNER_TENSORS = {"relu": 1, "gelu": 2, "swiglu": 4}
"""Tensors of width d_ff that a feed-forward layer keeps for its gradient."""


class Memory(NamedTuple):
    """Bytes on one device, by what they are for."""

    parameters: int
    """The weights, and their copies in the precision of the products where that is lower."""
    gradients: int
    optimizer: int
    """Adam's two means."""
    activations: int
    """What forward keeps for backward, and what both work with meanwhile."""
    process: int
    """What Python, torch and the device's own libraries take before there is a model."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


class ActivationStorage(NamedTuple):
    """How a device keeps what backward needs."""

    width: int
    """Bytes of a number that goes into or comes out of a matrix product."""
    padded: bool
    """Attention by matrix products over padded blocks, as on a CPU; not by flash attention."""
    slack: float
    """Memory held for each byte of activations in use: free pieces of a heap fit what comes next only in part."""
    process: int
    """Bytes before there is a model."""

    @property
    def stream(self) -> int:
        """Bytes of a coordinate of the residual stream; a GPU's norms give float32."""
        return self.width if self.padded else FULL

    @property
    def noise(self) -> int:
        """Bytes of a coordinate's dropout."""
        return self.width if self.padded else 1


def activation_storage(*, gpu: bool, half: bool) -> ActivationStorage:
    """How a GPU, or a CPU, keeps it, with matrix products in 16 or 32 bits."""
    width = 2 if half else FULL
    if gpu:
        return ActivationStorage(width, padded=not half, slack=1.05, process=600_000_000)
    return ActivationStorage(width, padded=True, slack=1.4, process=320_000_000)


def training_memory(
    config: ModelConfig,
    parameters: int,
    vocabulary: int,
    source_tokens: int,
    target_tokens: int,
    length: int,
    on: ActivationStorage,
) -> Memory:
    """Memory of a step on so many tokens at once, in sentences of about `length` tokens."""
    copies = on.width * parameters if on.width < FULL else 0
    activations = (
        source_tokens * _source_token(config, length, on)
        + target_tokens * _target_token(config, length, on)
        + _passing(config, source_tokens, target_tokens, on)
        + 2 * FULL * vocabulary * config.d_model  # the projection's gradient, before and after it is scaled
        + SLICE_BYTES
    )
    return Memory(
        parameters=FULL * parameters + copies,
        gradients=FULL * parameters,
        optimizer=2 * FULL * parameters,
        activations=round(on.slack * activations),
        process=on.process,
    )


def _source_token(config: ModelConfig, length: int, on: ActivationStorage) -> int:
    """Bytes kept for a source token: the encoder's layers, and the memory's part in the decoder's."""
    attention = _query(config, length, on) + _key_value(config, on)
    layer = attention + _feed_forward(config, on) + 2 * _residual(config, on)
    for_decoder = _key_value(config, on) + (on.width * config.d_model if on.width < on.stream else 0)
    return _embedding(config, on) + config.layers * (layer + for_decoder)


def _target_token(config: ModelConfig, length: int, on: ActivationStorage) -> int:
    """Bytes kept for a target token: the decoder's layers, and the gradient of its output."""
    attention = 2 * _query(config, length, on) + _key_value(config, on)
    layer = attention + _feed_forward(config, on) + 3 * _residual(config, on)
    return _embedding(config, on) + config.layers * layer + on.width * config.d_model


def _embedding(config: ModelConfig, on: ActivationStorage) -> int:
    return config.d_model * on.noise if config.dropout else 0


def _residual(config: ModelConfig, on: ActivationStorage) -> int:
    """A sub-layer's input as its products take it, the noise of its dropout, and the sum that is normed."""
    return config.d_model * (on.width + (on.noise if config.dropout else 0) + on.stream)


def _query(config: ModelConfig, length: int, on: ActivationStorage) -> int:
    """Queries, their weights on the keys (or, in flash attention, the normaliser alone), and what is attended to."""
    weights = config.heads * FULL * (length if on.padded else 1)
    return config.heads * (config.key_size + config.value_size) * on.width + weights


def _key_value(config: ModelConfig, on: ActivationStorage) -> int:
    return config.heads * (config.key_size + config.value_size) * on.width


def _feed_forward(config: ModelConfig, on: ActivationStorage) -> int:
    return INNER_TENSORS[config.activation] * config.d_ff * on.width


def _passing(config: ModelConfig, source_tokens: int, target_tokens: int, on: ActivationStorage) -> int:
    """What backward works with at any moment: gradients of the stream, of the memory, and inside a layer."""
    widest = max(source_tokens, target_tokens)
    inside = 2 * on.width * config.d_ff + 2 * on.stream * config.d_model
    return widest * inside + source_tokens * on.stream * config.d_model
