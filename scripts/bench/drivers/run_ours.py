"""Train and translate with nmt."""

import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from unittest.mock import patch

import torch
from protocol import Counts, Job, Measurement, Result, serve
from times import Times
from translating import in_batches

from nmt.compute.machine import Machine, keep_memory, prepare_machine, wait
from nmt.config.compose import compose
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.data.batches import Batching, PairLengths, plan_epoch
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch, assemble, global_batches, prefetched
from nmt.data.store import PairStore
from nmt.decoding import batches as decoding_batches
from nmt.decoding.constraints import UNCONSTRAINED, Constraints
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.model.backends.chosen import choose
from nmt.runs.checkpoint import load
from nmt.text.tokenizer import Tokenizer
from nmt.training.build import build_trainer, training_batches
from nmt.training.memory_check import tokens_that_fit
from nmt.training.statistics import held_out_loss
from nmt.training.trainer import Trainer


def speed(job: Job) -> Result:
    """Measure the speed of training, with the same trainer and batches as `nmt train`."""
    config, trainer = prepared_trainer(job)
    store, device = PairStore.open(config.data_folder, "train"), trainer.machine.device
    if device.type == "cuda":
        tokens = tokens_that_fit(trainer, store, config.data.max_pieces + 1)
        trainer.config = replace(trainer.config, device_tokens=tokens)
    measurement = Measurement(job, wait=partial(wait, device))
    with closing(prefetched(training_batches(trainer, store))) as batches:
        for batch in batches:
            trainer.update(batch.pinned() if device.type == "cuda" else batch)
            if measurement.update(counts(batch)):
                break
    memory = {"memory": torch.cuda.max_memory_allocated()} if device.type == "cuda" else {}
    precision = "bf16" if trainer.machine.precision == torch.bfloat16 else "fp32"
    return {**measurement.result(), **memory, "loss": trainer.take_statistics().loss, "precision": precision}


def curve(job: Job) -> Result:
    """Train for some updates, and evaluate the development loss at regular intervals."""
    config, trainer = prepared_trainer(job)
    valid = list(_held_out(config))
    points, seconds, source, target = [], 0.0, 0, 0
    with batches_of(config, threads=trainer.gradient.concurrency) as batches:
        for batch in batches:
            began = time.perf_counter()
            trainer.update(batch)
            seconds += time.perf_counter() - began
            source, target = source + counts(batch).source, target + counts(batch).target
            if trainer.step % job["every"] == 0:
                means = held_out_loss(trainer.working_weights, valid, config.training, trainer.machine.device)
                loss = math.log(means.perplexity)
                points.append({"updates": trainer.step, "tokens": source + target, "seconds": seconds, "loss": loss})
            if trainer.step == job["updates"]:
                break
    return {"points": points}


def translate(job: Job) -> Result:
    """Translate batch by batch, or in parallel as `nmt translate` would with these batches."""
    torch.set_num_threads(job["threads"])
    keep_memory()
    checkpoint = load(Path(job["checkpoint"]))
    model, tokenizer = load_model(checkpoint, from_yaml(checkpoint.config_text).model, torch.device("cpu"))
    precision = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}[job["precision"]]
    decoding = DecodingConfig(beam=job["beam"], alpha=job["alpha"], batch_tokens=1 << 40, **job["controls"])
    required = {
        tuple(source): Constraints(terms=(tuple(term),))
        for source, term in zip(job["sources"], job["terms"], strict=False)
        if term
    }
    machine = Machine(torch.device("cpu"), torch.float32 if precision == torch.int8 else precision)
    choose(machine, kernels=True, trains=False)
    translator = TorchEngine([model], tokenizer, decoding, torch.device("cpu"), precision)

    def translate_batch(sources: list[list[int]]) -> list[list[int]]:
        constraints = [required.get(tuple(source), UNCONSTRAINED) for source in sources]
        return [hypotheses[0].tokens for hypotheses in translator.translate_ids(sources, constraints)]

    def translate_parallel(inputs: list[list[list[int]]]) -> list[list[list[int]]]:
        indices = count()
        batches = [list(islice(indices, len(batch))) for batch in inputs]
        with patch.object(decoding_batches, "batches_by_length", lambda *_: batches):
            translations = iter(translate_batch([source for batch in inputs for source in batch]))
        return [list(islice(translations, len(batch))) for batch in inputs]

    times = Times()
    times.wrap(translator, "search", "search")
    times.wrap(translator, "_least_risk", "choose")
    result = in_batches(job, translate_batch, translate_parallel)
    if decoding.strategy == "mbr" and times["search"]:  # forks keep their times for themselves
        result["choosing"] = times["choose"] / (times["choose"] + times["search"])
    return result


def prepared_trainer(job: Job) -> tuple[Config, Trainer]:
    """Return the settings and the trainer that `nmt train` would use."""
    config = compose(job["overrides"])
    machine = prepare_machine(config.runtime)
    tokenizer = Tokenizer.load(config.data_folder)
    return config, build_trainer(config, machine, (tokenizer.source_size, tokenizer.target_size))


@contextmanager
def batches_of(config: Config, rank: int = 0, devices: int = 1, threads: int = 1) -> Iterator[Iterator[GlobalBatch]]:
    """Assemble the global batches of training in the background."""
    training, store = config.training, PairStore.open(config.data_folder, "train")
    stream = global_batches(
        store,
        Batching.of(training, config.seed),
        device_tokens=training.device_tokens,
        start=DataPosition(),
        rank=rank,
        devices=devices,
        threads=threads,
    )
    with closing(prefetched(stream)) as batches:
        yield batches


def counts(batch: GlobalBatch) -> Counts:
    """Return the tokens of a global batch, without padding."""
    return Counts(batch.tokens - batch.target_tokens, batch.target_tokens)


def _held_out(config: Config) -> Iterator[MicroBatch]:
    store = PairStore.open(config.data_folder, "valid")
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    plan = plan_epoch(lengths, Batching(config.training.batch_tokens, seed=0), epoch=0)
    return (assemble(store, plan[index]) for index in range(len(plan)))


if __name__ == "__main__":
    serve({"speed": speed, "curve": curve, "translate": translate})
