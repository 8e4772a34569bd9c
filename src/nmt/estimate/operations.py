"""The operations of a training step on a GPU with the bytes and FLOPs of each, by formula: no model is built.

They are listed as the modules of `nmt.model` and the trainer run them, forward and backward. The real ones are counted
by `scripts/dev/fake_cuda`.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.estimate.cost import costs
from nmt.estimate.operation import FLOAT32_BYTES, LAUNCH, Operation, Part, backward, in_part, passes
from nmt.estimate.parameters import ParameterCounts
from nmt.model.activations import activation_of
from nmt.model.attention_choice import flash_obstacle
from nmt.model.build import architecture_of
from nmt.model.interface import Stack
from nmt.model.norms import LAYER, norm_of
from nmt.model.positions.base import positions_of

LOGITS_PER_CHUNK = 256 * 1024 * 1024
"""Logits that the loss computes at a time on a GPU."""


class Batch(NamedTuple):
    """A micro-batch, and the precision it is computed in."""

    source_tokens: int
    target_tokens: int
    length: int
    """Tokens of a sentence."""
    precision: str
    """That of the residual stream and of matrix products: fp32, bf16 or fp16."""
    fused: bool = True
    """Whether the GPU has flash attention, and runs the fused operations of `nmt.model.kernels`."""

    @property
    def exact(self) -> bool:
        """Whether it is computed in float32, without copies of the weights, fused rectifiers or flash attention."""
        return self.precision == "fp32"

    @property
    def width(self) -> int:
        """Bytes per number in the residual stream and in matrix products."""
        return FLOAT32_BYTES if self.exact else 2

    def tokens(self, stack: Stack) -> int:
        """Return the number of tokens that pass through a stack."""
        return stack.reads_source * self.source_tokens + stack.reads_target * self.target_tokens


def step_operations(
    config: ModelConfig, size: ParameterCounts, vocabularies: tuple[int, int], batch: Batch, micro_batches: int = 1
) -> list[Operation]:
    """Return the operations of a step with this many equal micro-batches, and words of source and target."""
    parameters = size.total
    operations = micro_batches * list(_micro_batch(config, vocabularies, batch))
    operations += (micro_batches - 1) * _gradient_sums(config, parameters)
    return operations + list(in_part(Part.OPTIMIZER, _update(parameters, batch)))


def _update(parameters: int, batch: Batch) -> Iterator[Operation]:
    yield Operation(FLOAT32_BYTES * parameters)  # the norm of the gradient
    yield Operation(8 * FLOAT32_BYTES * parameters)  # Adam: weights, gradients and two averages
    if not batch.exact:
        yield Operation((FLOAT32_BYTES + batch.width) * parameters)  # copies for matrix products
    if batch.precision == "fp16":
        yield from [Operation(2 * FLOAT32_BYTES * parameters), *(12 * [LAUNCH])]  # loss scaling
    yield from 20 * [LAUNCH]  # whether the gradient is finite, the sums of losses


def extra_operations(config: ModelConfig, training: TrainingConfig, size: ParameterCounts) -> list[Operation]:
    """Return the operations of an update in addition to those of Adam: those of features."""
    operations = [each for cost in costs(training) for each in passes(size.total, FLOAT32_BYTES, *cost.traffic)]
    updates = [cost.matrix_update for cost in costs(training) if cost.matrix_update]
    for stack in architecture_of(config).stacks(config) if updates else ():
        for sides in _matrices(config, stack):
            operations += stack.layers * [each for update in updates for each in update(min(sides), max(sides))]
    return list(in_part(Part.OPTIMIZER, operations))


def _matrices(config: ModelConfig, stack: Stack) -> Iterator[tuple[int, int]]:
    """Yield the shapes of a layer's matrices."""
    queries, keys, values = _head_widths(config)
    attended = config.heads * config.value_size, config.d_model
    yield from ((config.d_model, queries + keys + values), attended)
    if stack.cross_attention:
        yield from ((config.d_model, queries), (config.d_model, keys + values), attended)
    yield from ((config.d_model, (1 + activation_of(config).gated) * config.d_ff), (config.d_ff, config.d_model))


def _gradient_sums(config: ModelConfig, parameters: int) -> list[Operation]:
    """Add the gradient of a micro-batch to that of those before it, tensor by tensor."""
    tensors = 1  # word vectors, then two tensors for each linear layer and norm
    for stack in architecture_of(config).stacks(config):
        tensors += stack.layers * (20 if stack.cross_attention else 12)
    return tensors * list(backward(parameters / tensors, FLOAT32_BYTES, 3))


def _micro_batch(config: ModelConfig, vocabularies: tuple[int, int], batch: Batch) -> Iterator[Operation]:
    source_words, target_words = vocabularies
    stacks = architecture_of(config).stacks(config)
    yield from in_part(Part.OPTIMIZER, 12 * [LAUNCH])  # copies of the batch to the device, the seed of dropout
    for stack in stacks:
        words = target_words if stack.reads_target else source_words
        yield from _embedding(config, words, batch, batch.tokens(stack))
        for _ in range(stack.layers):
            yield from _layer(config, stack, batch)
    yield from _loss(config.d_model, target_words, batch)
    shared = 1 + len(stacks) if config.tie_embeddings else 1
    # sums of their gradients
    yield from backward(target_words * config.d_model, FLOAT32_BYTES, *((shared - 1) * [3]))


def _embedding(config: ModelConfig, vocabulary: int, batch: Batch, tokens: int) -> Iterator[Operation]:
    """Look up and scale word vectors, add positions, drop some; backward, add up the gradient of each word."""
    numbers = tokens * config.d_model
    yield from passes(numbers, batch.width, 2, 2, 2, 3)
    if config.dropout:
        yield from _mask_passes(numbers, batch)
    yield from backward(numbers, batch.width, 2)
    if not batch.exact:
        yield from backward(numbers, 1, batch.width + FLOAT32_BYTES)
    yield from backward(numbers + vocabulary * config.d_model, FLOAT32_BYTES, 1)


def _mask_passes(numbers: float, batch: Batch) -> Iterator[Operation]:
    """Yield the operations of dropout with a stored mask, which has a byte per number."""
    yield from passes(numbers, 1, 2 * batch.width + 1)
    yield from backward(numbers, 1, 2 * batch.width + 1)


def _layer(config: ModelConfig, stack: Stack, batch: Batch) -> Iterator[Operation]:
    tokens, d_model = batch.tokens(stack), config.d_model
    queries, keys, values = _head_widths(config)
    yield from _linear(tokens, d_model, queries + keys + values, batch.width)
    yield from _attention(config, tokens, tokens, batch, suits_flash=not flash_obstacle(config))
    if positions_of(config).biases_scores:
        yield from _score_bias(config, tokens, batch)
    yield from backward(tokens * (queries + keys + values), batch.width, 2)  # their gradients become one tensor
    yield from _linear(tokens, config.heads * config.value_size, d_model, batch.width)
    yield from _residual(config, tokens, batch)
    if stack.cross_attention:
        yield from _linear(tokens, d_model, queries, batch.width)
        yield from _linear(batch.source_tokens, d_model, keys + values, batch.width)
        yield from _attention(config, tokens, batch.source_tokens, batch, suits_flash=not config.attention_dropout)
        yield from backward(batch.source_tokens * (keys + values), batch.width, 2)
        yield from backward(batch.source_tokens * d_model, batch.width, 3)  # the encoder output's gradient adds up
        yield from _linear(tokens, config.heads * config.value_size, d_model, batch.width)
        yield from _residual(config, tokens, batch)
    yield from _feed_forward(config, tokens, batch)
    yield from _residual(config, tokens, batch)


def _head_widths(config: ModelConfig) -> tuple[int, int, int]:
    """Return the widths of all queries, keys and values together."""
    return (
        config.heads * config.key_size,
        config.key_value_heads * config.key_size,
        config.key_value_heads * config.value_size,
    )


def _linear(tokens: int, inputs: int, outputs: int, width: int, *, bias_passes: int = 1) -> Iterator[Operation]:
    """Yield a product with weights, its two products backward, and the sum over the bias's gradient."""
    rows, flops = tokens * (inputs + outputs) * width, 2 * tokens * inputs * outputs
    yield Operation(rows + inputs * outputs * width, flops)
    yield Operation(rows + inputs * outputs * width, flops, Part.BACKWARD)
    yield Operation(rows + inputs * outputs * FLOAT32_BYTES, flops, Part.BACKWARD)
    yield from backward(tokens * outputs, width, bias_passes)


def _attention(config: ModelConfig, queries: int, keys: int, batch: Batch, *, suits_flash: bool) -> Iterator[Operation]:
    """Yield flash attention and its backward pass, or what padded attention does instead."""
    padded = batch.exact or not suits_flash
    width = config.heads * (config.key_size + config.value_size)
    pairs = queries * batch.length * width
    streams = (queries + keys) * width * batch.width
    if not padded:
        yield from (Operation(streams, 2 * pairs), LAUNCH)
        yield from in_part(Part.BACKWARD, (Operation(2 * streams, 5 * pairs), LAUNCH))
    if padded or not batch.fused:
        for part in (Part.FORWARD, Part.BACKWARD):
            yield from in_part(part, 4 * 2 * [Operation(2 * streams / 4)])  # pads and unpads four tensors in two passes
    if padded:
        scores = queries * batch.length * config.heads
        product = Operation(streams / 2 + scores * batch.width, pairs)
        yield from 2 * [product]
        yield from in_part(Part.BACKWARD, 4 * [product])
        yield from _weights(config, scores, batch)


def _weights(config: ModelConfig, scores: int, batch: Batch) -> Iterator[Operation]:
    """Yield what turns scores into weights in float32, and scores' gradient from that of weights."""
    yield from passes(scores, FLOAT32_BYTES, 2, 2, 2, 2)  # scale, masks, softmax
    yield from backward(scores, FLOAT32_BYTES, 3, 3, 1, 3, 2)
    if config.attention_dropout:  # draws which are kept, and drops the others
        yield from passes(scores, batch.width, 1, 3)
        yield from backward(scores, batch.width, 3, 3)
    if not batch.exact:
        casts = [Operation(scores * (FLOAT32_BYTES + batch.width))]
        yield from 2 * casts
        yield from in_part(Part.BACKWARD, 3 * casts)


def _score_bias(config: ModelConfig, queries: int, batch: Batch) -> Iterator[Operation]:
    """Yield what positions do that add numbers to the scores of self-attention."""
    numbers, scores = queries * config.heads * config.key_size, queries * batch.length * config.heads
    yield from passes(numbers, batch.width, 2, 2)  # pads the queries once more
    yield from passes(scores, FLOAT32_BYTES, 3)
    yield from 8 * [LAUNCH]  # distances
    if saved := queries * positions_of(config).bias_saved_numbers():  # they are learned
        yield from passes(saved, batch.width, 1, 1, 1)
        yield from backward(saved, batch.width, 1, 1, 1, 1)
        yield from backward(scores, batch.width, 2, 2)
        yield from backward(numbers, batch.width, 2, 2, 3)


def _residual(config: ModelConfig, tokens: int, batch: Batch) -> Iterator[Operation]:
    """Add a sub-layer's output to the stream, with dropout and norm; backward, add the gradients of both uses."""
    if batch.fused and config.norm_placement == "post" and norm_of(config) is LAYER:
        first, last = [3], [3, 5]  # one operation
    else:
        first, last = [3], [3, 2] if batch.fused else [3]
        first += [2] if batch.exact else [3, 4, 3]  # with casts to float32 and back
        last += [3] if batch.exact else [3, 6, 3]
    numbers = tokens * config.d_model
    yield from passes(numbers, batch.width, *first)
    yield from backward(numbers, batch.width, *last)
    if config.dropout and not batch.fused:
        yield from _mask_passes(numbers, batch)


def _feed_forward(config: ModelConfig, tokens: int, batch: Batch) -> Iterator[Operation]:
    activation, inner, width = activation_of(config), tokens * config.d_ff, batch.width
    if activation.gated:
        yield from _linear(tokens, config.d_model, 2 * config.d_ff, width)
        yield from passes(inner, width, 2, 3)
        yield from backward(inner, width, 3, 3, 3, 4)
    else:
        # in 16 bits the rectifier is part of the product, and fused with the sum over the bias's gradient
        rectified = activation.saved_tensors == 1 and not batch.exact
        fused = rectified and batch.fused
        yield from _linear(tokens, config.d_model, config.d_ff, width, bias_passes=3 if fused else 1)
        yield from passes(inner, width, *(() if rectified else (2,)))
        yield from backward(inner, width, *(() if fused else (3,)))
    yield from _linear(tokens, config.d_ff, config.d_model, width)


def _loss(d_model: int, vocabulary: int, batch: Batch) -> Iterator[Operation]:
    """Yield the loss with its gradient; the backward pass only multiplies that."""
    yield from in_part(Part.LOSS, _loss_in_chunks(d_model, vocabulary, batch))
    yield from backward(vocabulary * d_model, FLOAT32_BYTES, 2)
    yield from backward(batch.target_tokens * d_model, batch.width, 2)


def _loss_in_chunks(d_model: int, vocabulary: int, batch: Batch) -> Iterator[Operation]:
    tokens, width, matrix = batch.target_tokens, batch.width, vocabulary * d_model
    chunks = math.ceil(tokens * vocabulary / LOGITS_PER_CHUNK)
    rows = tokens / chunks
    product = rows * (d_model + vocabulary) * width
    flops = 2 * rows * matrix
    for _ in range(chunks):
        yield from 2 * [Operation(product + matrix * width, flops)]
        yield from passes(rows * vocabulary, 1, *_softmax_bytes(batch))  # logits become their gradient
        yield Operation(product + matrix * FLOAT32_BYTES, flops)
        yield from passes(matrix, FLOAT32_BYTES, 3)
        yield from passes(rows * d_model, width, 2)
        yield from 3 * [LAUNCH]
    yield from 12 * [LAUNCH]
    yield from passes(matrix, FLOAT32_BYTES, 1, 1, 2)  # mean word, zeros, its share
    yield from passes(tokens * d_model, width, 2, 2, 2, 3, 3, 2)


def _softmax_bytes(batch: Batch) -> list[int]:
    """Return the bytes per logit that its operations read and write: one in place, or softmax, two maxima and copy."""
    if batch.fused:
        return [2 * batch.width]
    return [batch.width + FLOAT32_BYTES, batch.width, FLOAT32_BYTES, FLOAT32_BYTES + batch.width, 0, 0, 0, 0, 0]
