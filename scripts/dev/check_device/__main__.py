"""First contact with a device: is what it computes correct, how fast is it, and which settings suit it?

    PYTHONPATH=src python scripts/dev/check_device                        # a GPU if there is one, at most ten minutes
    PYTHONPATH=src python scripts/dev/check_device --device cpu --shapes tiny --batch-tokens 2048 --steps 3

It needs only torch, numpy and this package: neither Hydra nor data. Each section has a time limit; if one fails, its
error is recorded, and the others go on. All results go into one JSON file.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.compute.cores import cpu_model, usable_cores
from nmt.compute.machine import Machine, memory_of, prepare_machine
from nmt.compute.time_limit import OutOfTimeError, time_limit
from nmt.config.schema import Config, RuntimeConfig
from nmt.data.synthetic import synthetic_pairs
from nmt.errors import UserError
from nmt.measuring.bench import TrainingBench
from nmt.measuring.choices import open_choices
from nmt.measuring.search import Row, Search
from nmt.measuring.table import as_lines
from nmt.storage.files import write_json

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from check_device import accuracy, links, speed

SECONDS_PER_CHOICE = {"cuda": 60.0, "cpu": 10.0}
"""Time limits of one choice of the tuning table, if the whole time allows."""
STEPS_PER_CHOICE = 30
"""Steps of training for which a choice on a CPU has time, at least: batches are made small enough."""


class Section(NamedTuple):
    """A part of the check."""

    name: str
    seconds: float
    """Its time limit."""
    run: Callable[[], Iterator[object]]
    """Yields the results, so that those before a failure are kept."""


def main() -> int:
    """Run all sections, and return 1 if a result is wrong or a section has failed."""
    options = _arguments()
    try:
        machine = prepare_machine(RuntimeConfig(device=options.device))
    except UserError as error:
        print(f"check_device: {error}", file=sys.stderr)
        return 2
    report: dict[str, Any] = {"device": _describe(machine), "sections": {}}
    print(*(f"{key}: {value}" for key, value in report["device"].items()), sep="\n", flush=True)
    end = time.monotonic() + 60 * options.minutes
    for section in Check(options, machine, end).sections():
        report["sections"][section.name] = _guarded(section, end)
        write_json(options.json, report)  # after each section, so that a killed check leaves what it found
    wrong = _problems(report)
    print(f"\n{'; '.join(wrong) if wrong else 'all results are correct'}\nwritten to {options.json}")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--shapes", nargs="+", default=["base", "big"], choices=list(speed.SHAPES))
    parser.add_argument(
        "--batch-tokens", type=int, default=25_000, help="most source tokens, and most target tokens, in a global batch"
    )
    parser.add_argument(
        "--device-tokens", type=int, default=0, help="most source tokens in a micro-batch; 0 for no limit"
    )
    parser.add_argument("--steps", type=int, default=20, help="steps to time")
    parser.add_argument("--compile", action="store_true", help="also check and time compiled models on a CPU")
    parser.add_argument("--processes", type=int, default=0, help="devices that train together; 0 for all GPUs")
    parser.add_argument("--minutes", type=float, default=10.0, help="time limit of the whole check")
    parser.add_argument("--json", type=Path, default=Path("check_device.json"), help="file for all results")
    return parser.parse_args()


def _describe(machine: Machine) -> dict[str, object]:
    on_gpu = machine.device.type == "cuda"
    return {
        "name": torch.cuda.get_device_name(machine.device) if on_gpu else cpu_model(),
        "count": torch.cuda.device_count() if on_gpu else 1,
        "cores": usable_cores(),
        "threads": torch.get_num_threads(),
        "memory": memory_of(machine.device),
        "capability": list(torch.cuda.get_device_capability(machine.device)) if on_gpu else None,
        "precision": str(machine.precision).removeprefix("torch."),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
    }


def _guarded(section: Section, end: float) -> dict[str, object]:
    """Run a section within its time, and return its results, its error and the seconds that it took."""
    print(f"\n{section.name}", flush=True)
    results, error, started = list[Any](), "", time.monotonic()
    try:
        with time_limit(min(section.seconds, end - started)):
            for result in section.run():
                results.append(_plain(result))
                print(f"  {_line(results[-1])}", flush=True)
    except OutOfTimeError:
        error = "no time left"
    except Exception as failure:  # of any kind: the other sections go on
        error = f"{type(failure).__name__}: {failure}"
    if error:
        print(f"  FAILED: {error}", flush=True)
    return {"seconds": round(time.monotonic() - started, 2), "error": error or None, "results": results}


def _plain(result: object) -> Any:
    """Return a result as JSON values."""
    if is_dataclass(result) and not isinstance(result, type):
        return asdict(result)
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        return {key: _plain(value) for key, value in result._asdict().items()}
    return result


def _line(result: dict[str, object]) -> str:
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in result.items()
    )


def _problems(report: dict[str, Any]) -> list[str]:
    """Return what is wrong or has failed, in words."""
    failed = [f"{name} failed" for name, section in report["sections"].items() if section["error"]]
    wrong = [
        f"{result.get('name', name)} is WRONG"
        for name, section in report["sections"].items()
        for result in section["results"]
        if result.get("correct") is False
    ]
    return [*wrong, *failed]


def _attempt(name: str, measure: Callable[[], object]) -> object:
    """Return a measurement, or its error: one that fails does not end its section."""
    try:
        return measure()
    except OutOfTimeError:
        raise
    except Exception as error:
        return {"name": name, "correct": False, "error": f"{type(error).__name__}: {error}"[:300]}


class Check:
    """The sections, for one device."""

    def __init__(self, options: argparse.Namespace, machine: Machine, end: float) -> None:
        """Check the device of `machine` until the clock shows `end`."""
        self.options, self.machine, self.end = options, machine, end
        self.device = machine.device
        self.compiled = (False, True) if options.compile or self.device.type == "cuda" else (False,)
        self.peak = 0.0
        """FLOP/s of a large matrix product."""

    def sections(self) -> list[Section]:
        """Return all sections, in order."""
        return [
            Section("training steps, compared with float64", 120, self.training_steps),
            Section("operations, compared with float64", 60, lambda: accuracy.compare_operations(self.device)),
            Section("matrix products", 20, self.matrix_products),
            Section("training speed", 180, self.training_speed),
            Section("decoding speed", 60, self.decoding_speed),
            Section("several devices", 110, self.several_devices),
            Section("tuning", 60 * self.options.minutes, self.tuning),
        ]

    def training_steps(self) -> Iterator[object]:
        """Compare loss and gradient of each way to compute a step."""
        exact = accuracy.exact_step()
        for path in accuracy.training_paths(self.device.type, compiled=True in self.compiled):
            yield _attempt(path.name, partial(accuracy.compare_training, path, self.device.type, exact))

    def matrix_products(self) -> Iterator[object]:
        """Measure the peak that speeds are compared with."""
        self.peak = speed.matrix_product_peak(self.device)
        yield {"name": "bf16", "flops_per_second": self.peak}

    def training_speed(self) -> Iterator[object]:
        """Time training steps of each shape."""
        for shape in self.options.shapes:
            for compiled in self.compiled:
                config = self._run(shape, compiled)
                measure = partial(speed.training_speed, shape, config, self.peak, self.options.steps)
                yield _attempt(shape, measure)

    def decoding_speed(self) -> Iterator[object]:
        """Time beam search with a model of each shape."""
        for shape in self.options.shapes:
            yield _attempt(shape, partial(speed.decoding_speed, shape, self.machine))

    def several_devices(self) -> Iterator[object]:
        """Check and time what all devices do together."""
        count = self.options.processes or (torch.cuda.device_count() if self.device.type == "cuda" else 1)
        if count < 2:
            yield {"name": "skipped", "reason": "there is one device"}
        else:
            yield links.compare(self.device.type, count, seconds=100)

    def tuning(self) -> Iterator[Row]:
        """Yield the tuning table of the first shape, made in the time that is left."""
        config = self._run(self.options.shapes[0])
        config = replace(config, runtime=replace(config.runtime, precision="auto"))
        choices = [choice.setting for choice in open_choices(config, self.device.type)]
        seconds = min((self.end - time.monotonic()) / (len(choices) + 1), SECONDS_PER_CHOICE[self.device.type])
        bench = TrainingBench(config, synthetic_pairs(speed.WORDS, speed.WORDS), (speed.WORDS, speed.WORDS))
        if self.device.type == "cpu":
            bench.fit_batch(seconds / STEPS_PER_CHOICE, limit=seconds)
        yield from Search(bench, seconds, _show).run(choices).table

    def _run(self, shape: str, compiled: bool | None = None) -> Config:
        options = self.options
        config = speed.run_settings(shape, self.device.type, options.batch_tokens, options.device_tokens)
        return replace(config, runtime=replace(config.runtime, compile=compiled))


def _show(row: Row) -> None:
    print(f"  {as_lines([row], {})[-1]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
