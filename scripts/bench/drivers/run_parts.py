"""Where the time of this project's step goes, what its data pipeline can deliver, and how several processes scale."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from protocol import Job, Result, Stretch, serve
from run_ours import batches_of, counts, prepared_trainer
from torch.profiler import ProfilerActivity, profile

from nmt.compute import distributed
from nmt.config.compose import compose
from nmt.text.tokenizer import Tokenizer
from nmt.training import trainer as training_step
from nmt.training.build import build_trainer

PROFILED = 10
"""Steps under the profiler, which slows them."""
OPERATORS = 25


class Times(dict[str, float]):
    """Seconds by part."""

    def __missing__(self, part: str) -> float:
        return 0.0

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Count the block's time."""
        began = time.perf_counter()
        yield
        self[part] += time.perf_counter() - began

    def wrap(self, owner: Any, name: str, part: str) -> None:
        """Count the time of a function or method from now on."""
        work: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            with self.of(part):
                return work(*arguments, **named)

        setattr(owner, name, timed)


def breakdown(job: Job) -> Result:
    """Seconds of a step by part, and its dearest operators; all threads share each, so that one clock can follow."""
    config, trainer = prepared_trainer(job)
    trainer.concurrency = 1
    times, steps, tokens = Times(), 0, 0
    times.wrap(trainer.objective, "forward", "forward and loss")
    times.wrap(training_step, "smoothed_cross_entropy", "loss")
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
                work = next(batches)
            with times.of("update"):
                trainer.update(work)
            steps, tokens = steps + 1, tokens + work.tokens
        seen = Times(times)  # the profiled steps do not count
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for _ in range(PROFILED):
                trainer.update(next(batches))
    seen["forward"] = seen.pop("forward and loss") - seen["loss"]
    parts = ("waiting for data", "forward", "loss", "backward", "optimizer")
    seen["the rest"] = seen["update"] - sum(seen[part] for part in parts[1:])
    seconds = seen["update"] + seen["waiting for data"]
    events = sorted(profiler.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    return {
        "steps": steps,
        "tokens_per_second": tokens / seconds,
        "milliseconds": {part: 1000 * seen[part] / steps for part in (*parts, "the rest")},
        "operators": [
            {"name": event.key, "share": event.self_cpu_time_total / total, "calls": event.count / PROFILED}
            for event in events[:OPERATORS]
        ],
    }


def pipeline(job: Job) -> Result:
    """Take batches as fast as they come, and train on none."""
    config = compose(job["overrides"])
    stretch = Stretch(job)
    with batches_of(config) as batches:
        for work in batches:
            if stretch.update(counts(work)):
                break
    return stretch.result()


def processes(job: Job) -> Result:
    """Train for a stretch of updates, with others where torchrun started some."""
    config = compose(job["overrides"])
    with distributed.session(config.runtime) as machine:
        trainer = build_trainer(config, machine, Tokenizer.load(config.data_folder))
        tokens, began = 0, 0.0
        with batches_of(config, distributed.rank(), distributed.world_size(), trainer.concurrency) as batches:
            for index in range(job["updates"] + job["warmup_updates"]):
                if index == job["warmup_updates"]:
                    distributed.barrier()
                    began = time.perf_counter()
                work = next(batches)
                trainer.update(work)
                tokens += work.tokens if began else 0
        distributed.barrier()
        if not distributed.is_main():
            raise SystemExit  # one answer is enough
        return {"tokens": tokens, "seconds": time.perf_counter() - began, "processes": distributed.world_size()}


if __name__ == "__main__":
    serve({"breakdown": breakdown, "pipeline": pipeline, "processes": processes})
