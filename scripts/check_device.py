"""Compare the losses and gradients of this machine's device with float64, then time training steps.

    PYTHONPATH=src python scripts/check_device.py                        # a GPU if there is one
    PYTHONPATH=src python scripts/check_device.py --device cpu --shapes tiny --batch-tokens 2048 --steps 3

It needs only torch, numpy and this package. The reference is float64 on the CPU. Then it times the base and big models
with the paper's full batch and sentences as long as those of WMT14.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import cycle

import torch
from synthetic import SyntheticText, peak_memory
from torch import Tensor

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.schema import ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.loader import GlobalBatch
from nmt.errors import UserError
from nmt.estimate.parameters import count_parameters, training_flops
from nmt.model.build import build_model
from nmt.model.working_weights import WorkingWeights
from nmt.training.trainer import Objective, Trainer

SHAPES = {
    "tiny": ModelConfig(layers=2, d_model=128, d_ff=512, heads=2),
    "small": ModelConfig(layers=3, d_model=256, d_ff=1024, heads=4),
    "base": ModelConfig(),
    "big": ModelConfig(d_model=1024, d_ff=4096, heads=16, dropout=0.3),
}
WORDS = 37_000
TOLERANCES = {torch.float32: 2e-3, torch.bfloat16: 6e-2}
"""Largest relative error of the gradient compared with float64; float32 is TF32 on a GPU."""
WARMUP_STEPS = 3


def main() -> int:
    """Print both tables, and return 1 if a gradient is wrong."""
    options = _arguments()
    try:
        device = prepare_machine(RuntimeConfig(device=options.device, precision="bf16")).device
    except UserError as error:
        print(f"check_device: {error}", file=sys.stderr)
        return 2
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    print(f"{name}; torch {torch.__version__}\n")
    modes = (False, True) if options.compile or device.type == "cuda" else (False,)
    correct = check(device, modes)
    peak = matrix_product_peak(device)
    print(f"\nmatrix products in bf16: {peak / 1e12:.2f} TFLOP/s\n")
    print(f"{'shape':<8}{'compiled':<10}{'ms/step':>10}{'tokens/s':>12}{'share of peak':>14}{'memory GB':>11}")
    for shape in options.shapes:
        for compiled in modes:
            print(f"{shape:<8}{'yes' if compiled else 'no':<10}{timed(shape, compiled, device, peak, options)}")
    return 0 if correct else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--shapes", nargs="+", default=["base", "big"], choices=list(SHAPES))
    parser.add_argument(
        "--batch-tokens", type=int, default=25_000, help="most source tokens, and most target tokens, in a global batch"
    )
    parser.add_argument(
        "--device-tokens", type=int, default=0, help="most source tokens in a micro-batch; 0 for no limit"
    )
    parser.add_argument("--steps", type=int, default=20, help="steps to time")
    parser.add_argument("--compile", action="store_true", help="also time compiled models on a CPU")
    return parser.parse_args()


def check(device: torch.device, modes: tuple[bool, ...]) -> bool:
    """Print the errors of loss and gradient compared with float64, and return whether all are within the tolerance."""
    config = ModelConfig(layers=2, d_model=128, d_ff=512, heads=2, dropout=0.0)
    text = SyntheticText(1000, batch_tokens=600)
    (batch,) = text.step(text.median_batch()).micro_batches
    torch.manual_seed(1)
    weights = build_model(config, 1000, 1000).state_dict()

    def computed(device: torch.device, dtype: torch.dtype, compiled: bool = False) -> tuple[float, Tensor]:
        model = build_model(config, 1000, 1000)
        model.load_state_dict(weights)
        if dtype == torch.float64:
            model.double()
        model.to(device)
        if compiled:
            model.compile(dynamic=True)
        with WorkingWeights(model, dtype).active():
            losses = Objective(model, 0.1)(batch.to(device))
        losses.smoothed.backward()
        gradient = torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
        return float(losses.smoothed.detach()), gradient.double().cpu()

    loss, gradient = computed(torch.device("cpu"), torch.float64)
    print(f"{'error in':<18}{'compiled':<10}{'loss':>10}{'gradient':>10}")
    correct = True
    for dtype, tolerance in TOLERANCES.items():
        for compiled in modes:
            device_loss, device_gradient = computed(device, dtype, compiled)
            loss_error = abs(device_loss / loss - 1)
            gradient_error = float((device_gradient - gradient).norm() / gradient.norm())
            within = loss_error < tolerance and gradient_error < tolerance
            correct = correct and within
            words = str(dtype).removeprefix("torch."), "yes" if compiled else "no", "ok" if within else "WRONG"
            print(f"{words[0]:<18}{words[1]:<10}{loss_error:>10.1e}{gradient_error:>10.1e}  {words[2]}")
    return correct


def matrix_product_peak(device: torch.device) -> float:
    """Return the FLOP/s of large matrix products in bf16, the best of ten."""
    size = 8192 if device.type == "cuda" else 2048
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    best = float("inf")
    for _ in range(10):
        _wait(device)
        started = time.perf_counter()
        left @ right
        _wait(device)
        best = min(best, time.perf_counter() - started)
    return float(2 * size**3 / best)


def timed(shape: str, compiled: bool, device: torch.device, peak: float, options: argparse.Namespace) -> str:
    """Return a row of the table: time, speed and memory of one model."""
    config = SHAPES[shape]
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    model = build_model(config, WORDS, WORDS).to(device)
    if compiled:
        model.compile(dynamic=True)
    training = TrainingConfig(batch_tokens=options.batch_tokens, device_tokens=options.device_tokens)
    trainer = Trainer(model, training, Machine(device, torch.bfloat16), seed=1)
    text = SyntheticText(WORDS, options.batch_tokens, options.device_tokens)
    batches = _batches(text, options.steps)
    for _ in range(WARMUP_STEPS):
        trainer.update(next(batches))
    _wait(device)
    timed_batches, started = [next(batches) for _ in range(options.steps)], time.perf_counter()
    for batch in timed_batches:
        trainer.update(batch)
    _wait(device)
    seconds = time.perf_counter() - started
    size = count_parameters(config, WORDS, WORDS)
    tokens = sum(batch.tokens for batch in timed_batches)
    targets = sum(batch.target_tokens for batch in timed_batches)
    flops = training_flops(config, size, WORDS * config.d_model, tokens - targets, targets)
    return (
        f"{1000 * seconds / options.steps:>10.0f}{tokens / seconds:>12,.0f}{flops / seconds / peak:>14.1%}"
        f"{peak_memory(device) / 1e9:>11.1f}"
    )


def _batches(text: SyntheticText, count: int) -> Iterator[GlobalBatch]:
    """Yield the same few global batches forever."""
    return cycle([text.step(text.plan[index]) for index in range(min(count, len(text.plan)))])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    sys.exit(main())
