"""Train with nmt: the same trainer and batches as `nmt train`. Or multiply large matrices, to know the peak."""

import time
from contextlib import closing
from dataclasses import replace
from functools import partial

import torch
from protocol import Job, Measurement, Result, serve

from nmt.compute.machine import Machine, prepare_machine, wait
from nmt.config.compose import compose
from nmt.data.loader import prefetched
from nmt.data.store import PairStore
from nmt.model.backends.chosen import choose
from nmt.text.tokenizer import Tokenizer
from nmt.training.build import build_trainer, training_batches
from nmt.training.memory_check import tokens_that_fit

SIZES = {"cpu": 2048, "cuda": 8192}
"""Rows and columns of the matrices."""
SECONDS = 2.0


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
    return {**measurement.result, **memory, "loss": trainer.take_statistics().loss, "precision": precision}


def peak(job: Job) -> Result:
    """Return the FLOP/s of the fastest large matrix product within `SECONDS`, by the library that nmt uses."""
    torch.set_num_threads(job["threads"])
    device, dtype = torch.device(job["device"]), torch.bfloat16 if job["precision"] == "bf16" else torch.float32
    backend, size = choose(Machine(device, dtype), kernels=True), SIZES[device.type]
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    fastest, ends = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        began = time.perf_counter()
        backend.multiply(left, right)
        wait(device)
        fastest = min(fastest, time.perf_counter() - began)
    return {"flops": 2 * size**3 / fastest}


if __name__ == "__main__":
    serve(speed=speed, peak=peak)
