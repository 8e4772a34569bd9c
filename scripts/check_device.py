"""Check what training computes on this machine's device, then time its steps; one table of each.

    PYTHONPATH=src python scripts/check_device.py                        # a GPU where there is one
    PYTHONPATH=src python scripts/check_device.py --device cpu --shapes tiny --batch-tokens 2048 --steps 3

It needs torch, numpy and this package's core alone. Losses and gradients are compared with those of float64 on
the CPU. Then base and big are timed with sentences as long as those of WMT14 and the paper's full batch.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import cycle

import torch
from made_up import MadeUp, peak_memory
from torch import Tensor

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.schema import ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.loader import GlobalBatch
from nmt.errors import UserError
from nmt.estimate.parameters import count_parameters, training_flops
from nmt.model.build import build_model
from nmt.training.trainer import Objective, Trainer

SHAPES = {
    "tiny": ModelConfig(layers=2, d_model=128, d_ff=512, heads=2),
    "small": ModelConfig(layers=3, d_model=256, d_ff=1024, heads=4),
    "base": ModelConfig(),
    "big": ModelConfig(d_model=1024, d_ff=4096, heads=16, dropout=0.3),
}
WORDS = 37_000
TOLERANCES = {torch.float32: 2e-3, torch.bfloat16: 6e-2}
"""How far a gradient may be from float64's, as a share of its length; float32 is TF32 on a GPU."""
WARM_UP = 3


def main() -> int:
    """Check and time; 1 where a check fails."""
    options = _arguments()
    try:
        device = prepare_machine(RuntimeConfig(device=options.device, precision="bf16")).device
    except UserError as error:
        print(f"check_device: {error}", file=sys.stderr)
        return 2
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    print(f"{name}; torch {torch.__version__}\n")
    modes = (False, True) if options.compile or device.type == "cuda" else (False,)
    right = check(device, modes)
    peak = matrix_product_peak(device)
    print(f"\nmatrix products in bf16: {peak / 1e12:.2f} TFLOP/s at most\n")
    print(f"{'shape':<8}{'compiled':<10}{'ms a step':>10}{'tokens/s':>12}{'of the peak':>13}{'memory GB':>11}")
    for shape in options.shapes:
        for compiled in modes:
            print(f"{shape:<8}{'yes' if compiled else 'no':<10}{timed(shape, compiled, device, peak, options)}")
    return 0 if right else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--shapes", nargs="+", default=["base", "big"], choices=list(SHAPES))
    parser.add_argument("--batch-tokens", type=int, default=25_000, help="a side, at most")
    parser.add_argument("--device-tokens", type=int, default=0, help="a side, at once; the rest is accumulated")
    parser.add_argument("--steps", type=int, default=20, help="steps to time")
    parser.add_argument("--compile", action="store_true", help="also compiled on a CPU, as on a GPU")
    return parser.parse_args()


def check(device: torch.device, modes: tuple[bool, ...]) -> bool:
    """Whether loss and gradient are those of float64, to what the precision can hold."""
    config = ModelConfig(layers=2, d_model=128, d_ff=512, heads=2, dropout=0.0)
    text = MadeUp(1000, batch_tokens=600)
    (batch,) = text.step(text.middling()).micro_batches
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
        with Machine(device, dtype).autocast():
            losses = Objective(model, 0.1)(batch.to(device))
        losses.smoothed.backward()
        gradient = torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
        return float(losses.smoothed.detach()), gradient.double().cpu()

    loss, gradient = computed(torch.device("cpu"), torch.float64)
    print(f"{'against float64':<18}{'compiled':<10}{'loss':>10}{'gradient':>10}")
    right = True
    for dtype, tolerance in TOLERANCES.items():
        for compiled in modes:
            own_loss, own = computed(device, dtype, compiled)
            off, apart = abs(own_loss / loss - 1), float((own - gradient).norm() / gradient.norm())
            good = off < tolerance and apart < tolerance
            right = right and good
            words = str(dtype).removeprefix("torch."), "yes" if compiled else "no", "ok" if good else "WRONG"
            print(f"{words[0]:<18}{words[1]:<10}{off:>10.1e}{apart:>10.1e}  {words[2]}")
    return right


def matrix_product_peak(device: torch.device) -> float:
    """Floating-point operations a second of large products in bf16, the best of a few."""
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
    """A row of the table: steps of a shape."""
    config = SHAPES[shape]
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    model = build_model(config, WORDS, WORDS).to(device)
    if compiled:
        model.compile(dynamic=True)
    training = TrainingConfig(batch_tokens=options.batch_tokens, device_tokens=options.device_tokens)
    trainer = Trainer(model, training, Machine(device, torch.bfloat16), seed=1)
    text = MadeUp(WORDS, options.batch_tokens, options.device_tokens)
    batches = _batches(text, options.steps)
    for _ in range(WARM_UP):
        trainer.update(next(batches))
    _wait(device)
    done, started = [next(batches) for _ in range(options.steps)], time.perf_counter()
    for work in done:
        trainer.update(work)
    _wait(device)
    seconds = time.perf_counter() - started
    size = count_parameters(config, WORDS, WORDS)
    tokens, targets = sum(work.tokens for work in done), sum(work.target_tokens for work in done)
    flops = training_flops(config, size, WORDS * config.d_model, tokens - targets, targets)
    return (
        f"{1000 * seconds / options.steps:>10.0f}{tokens / seconds:>12,.0f}{flops / seconds / peak:>13.1%}"
        f"{peak_memory(device) / 1e9:>11.1f}"
    )


def _batches(text: MadeUp, count: int) -> Iterator[GlobalBatch]:
    """Some steps, over and over."""
    return cycle([text.step(text.plan[index]) for index in range(min(count, len(text.plan)))])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    sys.exit(main())
