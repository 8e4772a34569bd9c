"""One step of training with the full batch, measured beside what `nmt describe` foretells of its memory.

    .venv/bin/python scripts/measure_step.py model=big training.device_tokens=6250

The text is made up: sentences about as long as those of WMT14, in random words. Overrides are those of `nmt train`.
"""

import sys
import time

import torch
from made_up import MadeUp, peak_memory

from nmt.commands.describe import describe
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.model.transformer import Transformer
from nmt.training.trainer import Trainer


def main() -> None:
    """Make a batch, train on a small part of it, then on the whole, and print what that took."""
    config = compose(sys.argv[1:])
    machine = prepare_machine(config.runtime)
    torch.manual_seed(config.seed)
    words = config.tokenizer.vocab_size
    trainer = Trainer(Transformer(config.model, words, words).to(machine.device), config.training, machine, config.seed)
    training = config.training
    text = MadeUp(words, training.batch_tokens, training.device_tokens, config.seed, trainer.concurrency)
    sentences = text.middling()
    small, whole = text.step(sentences[:8]), text.step(sentences)
    trainer.update(small)  # brings up the optimizer's state and the libraries
    started = time.perf_counter()
    trainer.update(whole)
    loss = trainer.take_statistics().loss  # waits for the device
    seconds = time.perf_counter() - started
    foretold, measured = describe(config, 1)["memory"]["total"], peak_memory(machine.device)
    print(f"{config.name}, {machine}, {torch.get_num_threads()} threads, loss {loss:.3f}")
    print(f"{len(whole.micro_batches)} micro-batches")
    print(f"step of {whole.tokens:,} tokens: {seconds:.2f} s, {whole.tokens / seconds:,.0f} tokens/s")
    print(f"memory: foretold {foretold / 1e9:.2f} GB, measured {measured / 1e9:.2f} GB: {foretold / measured - 1:+.1%}")


if __name__ == "__main__":
    main()
