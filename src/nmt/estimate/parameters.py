"""The number of parameters of a model and the operations of a training step, by formula: no model is built."""

from typing import NamedTuple

from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.model.activations import activation_of
from nmt.model.build import architecture_of
from nmt.model.interface import Stack
from nmt.model.norms import norm_of
from nmt.model.positions.base import positions_of


class ParameterCounts(NamedTuple):
    """Parameters by the part of the model that they belong to."""

    embedding: int
    """Word vectors (shared ones count once), the projection with its bias, and learned positions."""
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self)


def count_parameters(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> ParameterCounts:
    """Return the parameters of a model for vocabularies of these sizes."""
    words = target_vocabulary if config.tie_embeddings else source_vocabulary + 2 * target_vocabulary
    vectors = words + sum(positions_of(config).table_sizes().values())
    stacks = {"encoder": 0, "decoder": 0}
    for stack in architecture_of(config).stacks(config):
        stacks[stack.part] += _stack(config, stack)
    bias = target_vocabulary * config.output_bias
    return ParameterCounts(embedding=vectors * config.d_model + bias, **stacks)


def describe_depth(config: ModelConfig) -> str:
    """Return the number of layers of each stack: "6 + 6" for the paper's base model."""
    return " + ".join(str(stack.layers) for stack in architecture_of(config).stacks(config))


def passes_per_batch(training: TrainingConfig) -> int:
    """Return how often a step computes each micro-batch at the same time: R-Drop does so twice."""
    return 2 if training.r_drop else 1


def step_flops(config: Config, size: ParameterCounts, target_words: int) -> int:
    """Return the floating-point operations of a training step on a full global batch."""
    tokens = passes_per_batch(config.training) * config.training.batch_tokens
    return training_flops(config.model, size, target_words * config.model.d_model, tokens, tokens)


def training_flops(
    config: ModelConfig, size: ParameterCounts, projection: int, source_tokens: int, target_tokens: int
) -> int:
    """Return the floating-point operations of a step: 6 per token and parameter that the token passes.

    The products of queries with keys and of attention weights with values are not counted.

    Args:
        config: Settings of the model.
        size: Its parameters.
        projection: Parameters of the matrix before the softmax.
        source_tokens: Source tokens of the step.
        target_tokens: Target tokens of the step.
    """
    products = projection * target_tokens
    for stack in architecture_of(config).stacks(config):
        tokens = stack.reads_source * source_tokens + stack.reads_target * target_tokens
        products += getattr(size, stack.part) * tokens
    return 6 * products


def _stack(config: ModelConfig, stack: Stack) -> int:
    sublayers = 2 + stack.cross_attention
    attentions = (1 + stack.cross_attention) * _attention(config) + positions_of(config).bias_parameters()
    layer = attentions + _feed_forward(config) + sublayers * _norm(config)
    return stack.layers * layer + (_norm(config) if config.norm_placement == "pre" else 0)


def _attention(config: ModelConfig) -> int:
    queries = config.heads * config.key_size
    keys = config.key_value_heads * config.key_size
    values = config.key_value_heads * config.value_size
    inputs = sum(_linear(config.d_model, width) for width in (queries, keys, values))
    return inputs + _linear(config.heads * config.value_size, config.d_model)


def _feed_forward(config: ModelConfig) -> int:
    branches = 1 + activation_of(config).gated
    return branches * _linear(config.d_model, config.d_ff) + _linear(config.d_ff, config.d_model)


def _norm(config: ModelConfig) -> int:
    return norm_of(config).vectors * config.d_model


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs
