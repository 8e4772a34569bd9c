"""Compare a device's results with float64 on the CPU, by relative norm.

The norm of the difference is divided by the norm of the exact result, because single elements can be near zero. Outputs
of a LayerNorm are compared under a random linear loss: the sum of their squares is constant, and its gradient noise.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.keys import with_values
from nmt.config.schema import Config, DataConfig, ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.synthetic import synthetic_pairs
from nmt.features.tuning.search import Settings
from nmt.model.attention import Attend, FlashAttend, PaddedAttend, ShortAttend
from nmt.model.kernels.residual import dropout_add, dropout_add_norm
from nmt.model.kernels.softmax import softmax_gradient_
from nmt.model.packed import Packed
from nmt.training.new_trainer import new_trainer
from shared.synthetic import synthetic_batches

WORDS = 1000
TOLERANCES = {"fp32": 2e-5, "tf32": 3e-2, "bf16": 8e-2}
"""Largest relative error of the gradient of a small model, by the precision of matrix products.

float32 keeps 24 bits, TF32 11 and bf16 8, so that a product is off by 6e-8, 5e-4 and 4e-3. Through the layers and back
the errors grow up to twentyfold: 4e-7 in float32 and 4e-2 in bf16 were measured on a CPU, and 9e-3 with the products of
a CPU rounded like TF32's."""
LOSS_TOLERANCES = {"fp32": 2e-6, "tf32": 1e-3, "bf16": 5e-3}
"""The same for the loss, a mean over tokens, in which most of these errors cancel."""
OPERATION_TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 1.5e-2}
"""Largest relative error of one operation that uses no matrix products, or products without TF32."""


class Comparison(NamedTuple):
    """How far the results of a device are from float64."""

    name: str
    loss_error: float | None
    """None for a single operation, which has no loss."""
    error: float
    """Of the gradient, or the largest of an operation's results and gradients."""
    tolerance: float
    correct: bool


def relative_error(found: Tensor, exact: Tensor) -> float:
    """Return the norm of the difference, divided by the norm of the exact values."""
    return float((found.detach().double().cpu() - exact.detach()).norm() / exact.detach().norm())


class TrainingPath(NamedTuple):
    """A way to compute a training step."""

    name: str
    settings: Settings
    precision: str
    """A key of TOLERANCES."""
    tf32: bool = True
    """Whether float32 matrix products may use TF32, which only GPUs have."""


def training_paths(device: str, *, compiled: bool) -> list[TrainingPath]:
    """Return the paths that a device should be able to compute."""
    on_gpu = device == "cuda"
    fp32, bf16 = {"runtime.precision": "fp32"}, {"runtime.precision": "bf16"}
    paths = [TrainingPath("fp32", fp32, "tf32" if on_gpu else "fp32"), TrainingPath("bf16", bf16, "bf16")]
    if on_gpu:
        paths.append(TrainingPath("fp32 without TF32", fp32, "fp32", tf32=False))
        kinds = ("padded", "flash", "short")
        paths += [TrainingPath(f"bf16 {kind}", {**bf16, "runtime.attention": kind}, "bf16") for kind in kinds]
    if compiled:
        paths += [
            each._replace(name=f"{each.name} compiled", settings={**each.settings, "runtime.compile": True})
            for each in paths[:2]
        ]
    return paths


def small_run(device: str) -> Config:
    """Return the settings of a small model without dropout."""
    return Config(
        model=ModelConfig(layers=2, d_model=128, d_ff=512, heads=2, dropout=0.0),
        training=TrainingConfig(batch_tokens=600),
        data=DataConfig(max_pieces=60),
        runtime=RuntimeConfig(device=device, threads=1),
    )


class Step(NamedTuple):
    """The loss of a step and its gradient with respect to all weights."""

    loss: float
    gradient: Tensor


def training_step(config: Config, machine: Machine) -> Step:
    """Make one update with the real trainer, and return what it computed."""
    trainer = new_trainer(config, machine, WORDS, WORDS)
    if machine.precision == torch.float64:
        trainer.model.double()
    gradients = list[Tensor]()

    def keep(*_: object) -> None:
        gradients.extend(each.grad.detach().double().cpu().flatten() for each in parameters if each.grad is not None)

    parameters = list(trainer.model.parameters())
    trainer.optimizer.register_step_pre_hook(keep)
    text = synthetic_pairs(WORDS, WORDS, pairs=500, max_length=config.data.max_pieces)
    trainer.update(next(synthetic_batches(trainer, text)))
    return Step(trainer.take_statistics().loss, torch.cat(gradients))


def exact_step() -> Step:
    """Return the step in float64 on the CPU."""
    return training_step(small_run("cpu"), Machine(torch.device("cpu"), torch.float64))


def compare_training(path: TrainingPath, device: str, exact: Step) -> Comparison:
    """Compare a training step on a device with the exact one."""
    config = with_values(small_run(device), path.settings)
    machine = prepare_machine(config.runtime)
    with matrix_products(tf32=path.tf32):
        step = training_step(config, machine)
    loss_error, error = abs(step.loss / exact.loss - 1), relative_error(step.gradient, exact.gradient)
    tolerance = TOLERANCES[path.precision]
    correct = loss_error < LOSS_TOLERANCES[path.precision] and error < tolerance
    return Comparison(path.name, loss_error, error, tolerance, correct)


@contextmanager
def matrix_products(*, tf32: bool) -> Iterator[None]:
    """Let float32 matrix products use TF32 in this block if the process does, or never."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


Tensors = Sequence[Tensor]
Operation = Callable[[Tensors], Tensor]


def operation_error(ours: Operation, exact: Operation, inputs: Tensors, device: torch.device) -> float:
    """Return the largest relative error of an operation's result and gradients, under a random linear loss.

    Args:
        ours: The operation to test, on the device, in the precision of the inputs.
        exact: The same operation in plain PyTorch, which is computed on the CPU in float64.
        inputs: The tensors that it is differentiated with respect to.
        device: The device to test.
    """
    results = []
    for operation, place, dtype in ((ours, device, None), (exact, torch.device("cpu"), torch.float64)):
        leaves = [each.detach().to(place, dtype or each.dtype).requires_grad_() for each in inputs]
        output = operation(leaves)
        direction = torch.randn(output.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        output.backward(direction.to(inputs[0].dtype).to(place, output.dtype))
        results.append([output, *(leaf.grad for leaf in leaves if leaf.grad is not None)])
    return max(relative_error(found, expected) for found, expected in zip(*results, strict=True))


LENGTHS = ([5, 31, 1, 17, 64], [9, 1, 44, 8, 31])
"""Lengths of the sentences of both sides, which differ."""


def _random(*shape: int, dtype: torch.dtype, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _streams(device: torch.device) -> list[Packed]:
    sides = [torch.zeros(sum(lengths), dtype=torch.int64) for lengths in LENGTHS]
    packed = [Packed.from_lengths(each, torch.tensor(lengths)) for each, lengths in zip(sides, LENGTHS, strict=True)]
    return [each.to(device) for each in packed]


def attention_error(kind: str, device: torch.device, dtype: torch.dtype, *, causal: bool, width: int = 64) -> float:
    """Return the error of one implementation of attention: padded, flash or short."""
    target, source = _streams(device)
    keys = target if causal else source
    inputs = [
        _random(len(each.tokens), 2, width, dtype=dtype, seed=seed) for seed, each in enumerate((target, keys, keys))
    ]
    attend = _attend(kind, target, keys, causal=causal)
    from_lengths, to_lengths = LENGTHS[0], LENGTHS[0] if causal else LENGTHS[1]

    def exact(tensors: Tensors) -> Tensor:
        parts = zip(
            tensors[0].split(from_lengths), tensors[1].split(to_lengths), tensors[2].split(to_lengths), strict=True
        )
        return torch.cat([_attend_exactly(*each, causal=causal) for each in parts])

    def ours(tensors: Tensors) -> Tensor:
        queries, keys, values = tensors
        return attend(queries, keys, values)

    return operation_error(ours, exact, inputs, device)


def _attend(kind: str, queries: Packed, keys: Packed, *, causal: bool) -> Attend:
    implementations = {"padded": PaddedAttend, "flash": FlashAttend, "short": ShortAttend}
    attend: Attend = implementations[kind](queries, keys, causal=causal)
    return attend


def _attend_exactly(queries: Tensor, keys: Tensor, values: Tensor, *, causal: bool) -> Tensor:
    """Return the attention within one sentence, in plain PyTorch."""
    scores = torch.einsum("qhd,khd->hqk", queries, keys) / math.sqrt(queries.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).flatten(-2)


def residual_error(device: torch.device, dtype: torch.dtype, probability: float) -> float:
    """Return the error of dropout, addition and norm as one operation; its mask is read from the same operation."""
    rows, width, site = 100, 512, 3
    seed = torch.tensor([12345], device=device)
    inputs = [_random(rows, width, dtype=dtype, seed=each) for each in (1, 2)]
    inputs += [_random(width, dtype=torch.float32, seed=each) for each in (3, 4)]
    nothing, ones = torch.zeros(rows, width, device=device), torch.ones(rows, width, device=device)
    kept = dropout_add(nothing, ones, probability, seed, site).double().cpu()

    def ours(tensors: Tensors) -> Tensor:
        return dropout_add_norm(*tensors, probability, seed, site)  # type: ignore[call-arg, arg-type]

    def exact(tensors: Tensors) -> Tensor:
        stream, branch, gain, bias = tensors
        return F.layer_norm(stream + branch * kept, (width,), gain, bias)

    return operation_error(ours, exact, inputs, device)


def softmax_error(device: torch.device, dtype: torch.dtype) -> float:
    """Return the error of the gradient that replaces the logits of the loss, and of its two sums."""
    words, smoothing = 5003, 0.1
    logits, labels = _random(64, words, dtype=dtype).mul_(3), torch.arange(64) * 7
    replaced = logits.to(device, copy=True)
    normaliser, label_logit = softmax_gradient_(replaced, labels.to(device), smoothing)
    exact = logits.double()
    gradient = torch.softmax(exact, -1) - (1 - smoothing) * F.one_hot(labels, words)
    expected = gradient, exact.logsumexp(-1), exact.gather(-1, labels[:, None])[:, 0]
    pairs = zip((replaced, normaliser, label_logit), expected, strict=True)
    return max(relative_error(ours, each) for ours, each in pairs)


def compare_operations(device: torch.device) -> Iterator[Comparison]:
    """Compare each fused operation on a device with float64, in float32 and bf16."""
    for dtype, tolerance in OPERATION_TOLERANCES.items():
        checks: dict[str, Callable[[], float]] = {
            "dropout, add and norm": lambda dtype=dtype: residual_error(device, dtype, 0.3),  # type: ignore[misc]
            "softmax to gradient": lambda dtype=dtype: softmax_error(device, dtype),  # type: ignore[misc]
        }
        kinds = ("padded", "short", *(("flash",) if device.type == "cuda" and dtype == torch.bfloat16 else ()))
        for kind in kinds:
            for causal in (False, True):
                name = f"{kind} {'causal' if causal else 'cross'} attention"
                checks[name] = lambda dtype=dtype, kind=kind, causal=causal: attention_error(  # type: ignore[misc]
                    kind, device, dtype, causal=causal
                )
        for name, check in checks.items():
            with matrix_products(tf32=False):
                error = check()
            yield Comparison(
                f"{name} in {str(dtype).removeprefix('torch.')}", None, error, tolerance, error < tolerance
            )
