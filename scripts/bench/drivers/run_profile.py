"""Profile nmt's training step, and measure its data pipeline and its scaling over processes."""

import time

import torch
from protocol import Job, Measurement, Result, serve
from run_ours import batches_of, counts, prepared_trainer
from times import Times
from torch.profiler import ProfilerActivity, profile

from nmt.compute import distributed
from nmt.config.compose import compose
from nmt.text.tokenizer import Tokenizer
from nmt.training import objective
from nmt.training.build import build_trainer

PROFILED_STEPS = 10
"""Steps under the profiler. They are not timed, because the profiler slows them."""
MAX_OPERATORS = 25


def breakdown(job: Job) -> Result:
    """Return the time of a step by phase, and its slowest operators.

    All threads share each operation, so one clock can measure the phases.
    """
    config, trainer = prepared_trainer(job)
    trainer.gradient.concurrency = 1
    times, steps, tokens = Times(), 0, 0
    times.wrap(trainer.replicas.objective, "forward", "forward and loss")
    times.wrap(objective, "smoothed_cross_entropy", "loss")
    times.wrap(torch.Tensor, "backward", "backward")
    times.wrap(trainer.optimizer, "step", "optimizer")
    with batches_of(config) as batches:
        ends = time.perf_counter() + job["warmup"]
        while time.perf_counter() < ends:
            trainer.update(next(batches))
        times.clear()
        ends = time.perf_counter() + job["seconds"]
        while time.perf_counter() < ends:
            with times.of("waiting for data"):
                batch = next(batches)
            with times.of("update"):
                trainer.update(batch)
            steps, tokens = steps + 1, tokens + batch.tokens
        measured = Times(times)  # a copy without the profiled steps
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for _ in range(PROFILED_STEPS):
                trainer.update(next(batches))
    measured["forward"] = measured.pop("forward and loss") - measured["loss"]
    phases = ("waiting for data", "forward", "loss", "backward", "optimizer")
    measured["other"] = measured["update"] - sum(measured[phase] for phase in phases[1:])
    seconds = measured["update"] + measured["waiting for data"]
    events = sorted(profiler.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    return {
        "steps": steps,
        "tokens_per_second": tokens / seconds,
        "milliseconds": {phase: 1000 * measured[phase] / steps for phase in (*phases, "other")},
        "operators": [
            {"name": event.key, "share": event.self_cpu_time_total / total, "calls": event.count / PROFILED_STEPS}
            for event in events[:MAX_OPERATORS]
        ],
    }


def pipeline(job: Job) -> Result:
    """Measure the speed of the data pipeline alone, without training."""
    config = compose(job["overrides"])
    measurement = Measurement(job)
    with batches_of(config) as batches:
        for batch in batches:
            if measurement.update(counts(batch)):
                break
    return measurement.result()


def processes(job: Job) -> Result:
    """Time some updates, with data parallelism if torchrun started several processes."""
    config = compose(job["overrides"])
    with distributed.session(config.runtime) as machine:
        tokenizer = Tokenizer.load(config.data_folder)
        trainer = build_trainer(config, machine, (tokenizer.source_size, tokenizer.target_size))
        tokens, began = 0, 0.0
        with batches_of(config, distributed.rank(), distributed.world_size(), trainer.gradient.concurrency) as batches:
            for index in range(job["updates"] + job["warmup_updates"]):
                if index == job["warmup_updates"]:
                    distributed.barrier()
                    began = time.perf_counter()
                batch = next(batches)
                trainer.update(batch)
                tokens += batch.tokens if began else 0
        distributed.barrier()
        if not distributed.is_main():
            raise SystemExit  # only the main process writes the result
        return {"tokens": tokens, "seconds": time.perf_counter() - began, "processes": distributed.world_size()}


if __name__ == "__main__":
    serve({"breakdown": breakdown, "pipeline": pipeline, "processes": processes})
