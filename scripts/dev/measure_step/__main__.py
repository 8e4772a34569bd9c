"""Measure one training step with the full batch, and compare its memory with the estimate of `nmt describe`.

    .venv/bin/python scripts/dev/measure_step model=big training.device_tokens=6250

The text is synthetic: random words in sentences about as long as those of WMT14. Overrides are those of `nmt train`.
"""

import resource
import sys
import time
from pathlib import Path

import torch

from nmt.commands.describe import describe
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.training.build import build_trainer

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from shared.command_line import run_tool, tool_parser
from shared.synthetic import SyntheticText


def main() -> None:
    """Train on a few sentences to warm up, then on a full batch, and print time and memory."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, such as model=big")
    config = compose(parser.parse_args().overrides)
    machine = prepare_machine(config.runtime)
    words, training = config.tokenizer.vocab_size, config.training
    trainer = build_trainer(config, machine, (words, words))
    text = SyntheticText(
        words, training.batch_tokens, training.device_tokens, config.seed, trainer.gradient.concurrency
    )
    sentences, shapes = text.median_batch(), trainer.shapes(training.device_tokens)
    small, whole = text.step(sentences[:8], shapes), text.step(sentences, shapes)
    trainer.update(small)  # allocates the optimizer state and loads libraries
    started = time.perf_counter()
    trainer.update(whole)
    loss = trainer.take_statistics().loss  # waits for the device
    seconds = time.perf_counter() - started
    estimated, measured = describe(config, 1).memory.total, peak_memory(machine.device)
    print(f"{config.name}, {machine}, {torch.get_num_threads()} threads, loss {loss:.3f}")
    print(f"{len(whole.micro_batches)} micro-batches")
    print(f"step of {whole.tokens:,} tokens: {seconds:.2f} s, {whole.tokens / seconds:,.0f} tokens/s")
    print(
        f"memory: estimated {estimated / 1e9:.2f} GB, measured {measured / 1e9:.2f} GB: {estimated / measured - 1:+.1%}"
    )


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes: on the GPU, or of the whole process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    run_tool(main, __file__)
