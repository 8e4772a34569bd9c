"""How many parameters a Transformer has and what a step of training costs, by formula: no model is built."""

from typing import NamedTuple

from nmt.config.schema import ModelConfig


class ParameterCounts(NamedTuple):
    """Parameters by part."""

    embedding: int
    """The vocabulary's vectors (shared ones count once), the projection, and learned positions."""
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self)


def count_parameters(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> ParameterCounts:
    """Parameters of the model for vocabularies of these sizes."""
    words = target_vocabulary if config.tie_embeddings else source_vocabulary + 2 * target_vocabulary
    positions = 2 * config.max_positions if config.positions == "learned" else 0
    attention, feed_forward, norm = _attention(config), _feed_forward(config), _norm(config)
    last_norm = norm if config.norm_placement == "pre" else 0
    return ParameterCounts(
        embedding=(words + positions) * config.d_model,
        encoder=config.layers * (attention + feed_forward + 2 * norm) + last_norm,
        decoder=config.layers * (2 * attention + feed_forward + 3 * norm) + last_norm,
    )


def training_flops(size: ParameterCounts, projection: int, source_tokens: int, target_tokens: int) -> int:
    """Floating-point operations of a step: 6 a parameter that a token meets; attention's own products are left out.

    `projection` is the number of parameters of the matrix before the softmax.
    """
    return 6 * (size.encoder * source_tokens + (size.decoder + projection) * target_tokens)


def _attention(config: ModelConfig) -> int:
    queries = config.heads * config.key_size
    keys = config.key_value_heads * config.key_size
    values = config.key_value_heads * config.value_size
    into = sum(_linear(config.d_model, width) for width in (queries, keys, values))
    return into + _linear(config.heads * config.value_size, config.d_model)


def _feed_forward(config: ModelConfig) -> int:
    branches = 2 if config.activation == "swiglu" else 1
    return branches * _linear(config.d_model, config.d_ff) + _linear(config.d_ff, config.d_model)


def _norm(config: ModelConfig) -> int:
    return config.d_model if config.norm == "rms" else 2 * config.d_model


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs
