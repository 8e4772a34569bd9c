"""Train with nmt: the same trainer and batches as `nmt train`."""

from contextlib import closing
from dataclasses import replace
from functools import partial

import torch
from protocol import Job, Measurement, Result, serve

from nmt.compute.machine import prepare_machine, wait
from nmt.config.compose import compose
from nmt.data.loader import prefetched
from nmt.data.store import PairStore
from nmt.text.tokenizer import Tokenizer
from nmt.training.build import build_trainer, training_batches
from nmt.training.memory_check import tokens_that_fit


def speed(job: Job) -> Result:
    """Measure the speed of training."""
    config = compose(job["overrides"])
    machine = prepare_machine(config.runtime)
    tokenizer = Tokenizer.load(config.data_folder)
    trainer = build_trainer(config, machine, (tokenizer.source_size, tokenizer.target_size))
    store, on_gpu = PairStore.open(config.data_folder, "train"), machine.device.type == "cuda"
    if on_gpu:
        tokens = tokens_that_fit(trainer, store, config.data.max_pieces + 1)
        trainer.config = replace(trainer.config, device_tokens=tokens)
    measurement = Measurement(job, wait=partial(wait, machine.device))
    with closing(prefetched(training_batches(trainer, store))) as batches:
        for batch in batches:
            trainer.update(batch.pinned() if on_gpu else batch)
            if measurement.update(batch.tokens - batch.target_tokens, batch.target_tokens):
                break
    memory = {"memory": torch.cuda.max_memory_allocated()} if on_gpu else {}
    precision = "bf16" if machine.precision == torch.bfloat16 else "fp32"
    return {**measurement.result(), **memory, "loss": trainer.take_statistics().loss, "precision": precision}


if __name__ == "__main__":
    serve({"speed": speed})
