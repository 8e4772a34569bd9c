"""One step of training with the full batch, measured beside what `nmt describe` foretells of its memory.

    .venv/bin/python scripts/measure_step.py model=big training.device_tokens=6250

The text is made up: sentences about as long as those of WMT14, in random words. Overrides are those of `nmt train`.
"""

import resource
import sys
import time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch

from nmt.config.compose import compose
from nmt.config.schema import Config
from nmt.data.batches import Lengths, plan_epoch, slice_batch
from nmt.data.loader import Place, Step, assemble
from nmt.data.store import PairStore
from nmt.machine import prepare_machine
from nmt.model.transformer import Transformer
from nmt.stages.describe import describe
from nmt.training.step import Trainer

SENTENCES = 100_000
MEDIAN, SPREAD = 24, 0.5
"""Of the lengths, which are log-normal: 27 word pieces on average."""


def main() -> None:
    """Make a batch, train on a small part of it, then on the whole, and print what that took."""
    config = compose(sys.argv[1:])
    machine = prepare_machine(config.runtime)
    torch.manual_seed(config.seed)
    words = config.tokenizer.vocab_size
    trainer = Trainer(Transformer(config.model, words, words).to(machine.device), config.training, machine, config.seed)
    small, whole = batches(config)
    trainer.update(small)  # brings up the optimizer's state and the libraries
    started = time.perf_counter()
    trainer.update(whole)
    loss = trainer.means().loss  # waits for the device
    seconds = time.perf_counter() - started
    foretold, measured = describe(config, 1)["memory"]["total"], peak_memory(machine.device)
    print(f"{config.name}, {machine}, {torch.get_num_threads()} threads, {len(whole.slices)} slices, loss {loss:.3f}")
    print(f"step of {whole.tokens:,} tokens: {seconds:.2f} s, {whole.tokens / seconds:,.0f} tokens/s")
    print(f"memory: foretold {foretold / 1e9:.2f} GB, measured {measured / 1e9:.2f} GB: {foretold / measured - 1:+.1%}")


def batches(config: Config) -> tuple[Step, Step]:
    """A small step, and one of the full batch with sentences of middling length."""
    random = np.random.default_rng(config.seed)
    lengths = np.clip(random.lognormal(np.log(MEDIAN), SPREAD, SENTENCES), 1, config.data.max_pieces).astype(np.int64)
    marked = Lengths.with_marks(lengths, lengths)
    plan = plan_epoch(marked, config.training.batch_tokens, config.seed, epoch=0)
    means = [float(marked.target[plan[index]].mean()) for index in range(len(plan))]
    sentences = plan[int(np.argsort(means)[len(means) // 2])]
    tokens = random.integers(4, config.tokenizer.vocab_size, int(lengths.sum()))
    offsets = np.concatenate([[0], lengths.cumsum()])
    text: Any = SimpleNamespace(
        source_tokens=tokens, source_offsets=offsets, target_tokens=tokens, target_offsets=offsets
    )

    def step(part: Any) -> Step:
        slices = slice_batch(part, marked, 1, config.training.device_tokens)
        count = int(marked.target[part].sum())
        return Step([assemble(cast(PairStore, text), each) for each in slices], count, 2 * count, Place())

    return step(sentences[:8]), step(sentences)


def peak_memory(device: torch.device) -> int:
    """Bytes that this process held at most: on the GPU, or altogether."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
