"""`nmt doctor doctor.gpu=true`: are the results of the GPUs correct, how fast are they, and which settings suit them?

Each section has a time limit. If one fails, its error is recorded, and the others go on. All results go into one JSON
file, from which `nmt describe` takes the ratios of measured to estimated times, and onto one page.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt import __version__
from nmt.compute.cores import usable_cores
from nmt.compute.machine import Machine, device_name, memory_of, prepare_machine
from nmt.compute.time_limit import OutOfTimeError, time_limit
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.estimate.measured import STEPS, MeasuredStep, measured_file
from nmt.features.doctor import data_sheet, documents, page, speed, together
from nmt.features.doctor.settings import DoctorConfig
from nmt.measuring import accuracy
from nmt.measuring.bench import TrainingBench
from nmt.measuring.choices import open_choices
from nmt.measuring.search import Row, Search
from nmt.model.probe import Wanted, reason_of_failure, trials
from nmt.storage.files import write_json, write_text

SECONDS_PER_CHOICE = {"cuda": 60.0, "cpu": 10.0}
"""Time limits of one choice of the table of settings, if the whole time allows."""
STEPS_PER_CHOICE = 30
"""Steps of training for which a choice on a CPU has time, at least: batches are made small enough."""


class Section(NamedTuple):
    """A part of the check."""

    name: str
    seconds: float
    """Its time limit."""
    run: Callable[[], Iterator[object]]
    """Yields the results, so that those before a failure are kept."""


def run(config: Config) -> None:
    """Run all sections; raise an error if a result is wrong or a section has failed."""
    machine = _machine(config)
    sheet = data_sheet.sheet_of(machine.device)
    file = measured_file(config.runs_folder, sheet.kind)
    end = time.monotonic() + 60 * config.of(DoctorConfig).minutes
    report: dict[str, Any] = {"device": _describe(machine, sheet), "sections": {}, STEPS: []}
    print(*(f"{key}: {value}" for key, value in report["device"].items()), sep="\n", flush=True)
    check = Check(config, machine, sheet, end)
    for section in check.sections():
        report["sections"][section.name] = guarded(section, end)
        report[STEPS] = [each.to_json() for each in check.measured]
        write_json(file, report)  # after each section, so that a killed check leaves what it found
    _finish(report, file)


def _machine(config: Config) -> Machine:
    machine = prepare_machine(config.runtime)
    if machine.device.type == "cuda" or config.runtime.device == "cpu":
        return machine
    raise UserError(
        "doctor.gpu=true, but PyTorch finds no GPU of NVIDIA or AMD here: runtime.device=cpu rehearses it on a CPU"
    )


def _describe(machine: Machine, sheet: data_sheet.Sheet) -> dict[str, object]:
    on_gpu = machine.device.type == "cuda"
    return {
        "name": device_name(machine.device),
        "kind": sheet.kind,
        "count": torch.cuda.device_count() if on_gpu else 1,
        "cores": usable_cores(),
        "threads": torch.get_num_threads(),
        "memory": memory_of(machine.device),
        "capability": list(torch.cuda.get_device_capability(machine.device)) if on_gpu else None,
        "precision": machine.precision_name,
        "nmt": __version__,
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
    }


def _finish(report: dict[str, Any], file: Path) -> None:
    """Write the page, and print the lines of the documents that the results would replace."""
    lines = documents.lines(report)
    write_text(file.with_suffix(".html"), page.as_html(report, lines))
    print("\nlines of the documents that these results would replace, or follow:")
    print(*(f"{each.document}: {each.old} ...\n  {each.new}" for each in lines), sep="\n")
    print(f"\nwritten to {file} and {file.with_suffix('.html').name}; `nmt describe` uses the ratios")
    if wrong := problems(report):
        raise UserError(f"{'; '.join(wrong)}: see {file}")
    print("all results are correct")


def guarded(section: Section, end: float) -> dict[str, object]:
    """Run a section within its time, and return its results, its error and the seconds that it took."""
    print(f"\n{section.name}", flush=True)
    results, error, started = list[Any](), "", time.monotonic()
    end = min(end, started + section.seconds)
    try:
        with time_limit(end - started):
            for result in section.run():
                results.append(_plain(result))
                print(f"  {_line(results[-1])}", flush=True)
                if time.monotonic() > end:  # a library, such as a compiler, has caught the interrupt
                    raise OutOfTimeError
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
        return {key: _plain(value) for key, value in result._asdict().items() if value is not None}
    return result


def _line(result: dict[str, object]) -> str:
    return ", ".join(f"{key} {_short(value)}" for key, value in result.items())


def _short(value: object) -> str:
    if isinstance(value, dict):
        return f"({_line(value)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def problems(report: dict[str, Any]) -> list[str]:
    """Return what is wrong or has failed, in words."""
    failed = [f"{name} failed" for name, section in report["sections"].items() if section["error"]]
    wrong = [
        f"{result.get('name', name)} is WRONG"
        for name, section in report["sections"].items()
        for result in section["results"]
        if result.get("correct") is False
    ]
    return [*wrong, *failed]


def attempt(name: str, measure: Callable[[], object]) -> object:
    """Return a measurement, or its error: one that fails does not end its section."""
    try:
        return measure()
    except OutOfTimeError:
        raise
    except Exception as error:
        return {"name": name, "correct": False, "error": f"{type(error).__name__}: {error}"[:300]}


class Check:
    """The sections, for one kind of device."""

    def __init__(self, config: Config, machine: Machine, sheet: data_sheet.Sheet, end: float) -> None:
        """Check the device of `machine` until the clock shows `end`."""
        self.config, self.options, self.machine, self.end = config, config.of(DoctorConfig), machine, end
        self.device = machine.device
        # compiling base takes minutes
        self.compiled = (False, True) if config.runtime.compile else (False,)
        self.sheet = sheet
        self.measured: list[MeasuredStep] = []
        """The steps that were timed, for the estimates."""

    def sections(self) -> list[Section]:
        """Return all sections, in order."""
        half = self.machine.precision
        return [
            Section("trials of fast operations", 60, self.trials),
            Section("training steps, compared with float64", 120, self.training_steps),
            Section("operations, compared with float64", 60, lambda: accuracy.compare_operations(self.device, half)),
            Section("peaks", 20, self.peaks),
            Section("training speed", 180, self.training_speed),
            Section("decoding speed", 60, self.decoding_speed),
            Section("a run on one device", 90, self.run_on_one_device),
            Section("several devices", 120, self.several_devices),
            Section("fastest settings", 60 * self.options.minutes, self.fastest_settings),
        ]

    def trials(self) -> Iterator[object]:
        """Try the operations that training uses if they work, as each run does before its first step."""
        if self.device.type != "cuda":
            yield {"name": "skipped", "reason": "a CPU needs no trials"}
            return
        wanted = Wanted(speed.WORDS, "short", graphs=True, compiled=True)
        for trial in trials(speed.SHAPES[self.options.models[0]], self.machine, wanted):
            yield {"name": str(trial.operation), "failure": reason_of_failure(trial)}

    def training_steps(self) -> Iterator[object]:
        """Compare loss and gradient of each way to compute a step."""
        exact = cache(accuracy.exact_step)
        half = self.machine.precision_name
        for path in accuracy.training_paths(self.device.type, half, compiled=True in self.compiled):
            compare = partial(accuracy.compare_training, path, self.device.type, exact(path.longest))
            yield attempt(path.name, compare)

    def peaks(self) -> Iterator[object]:
        """Measure what large operations reach; estimates use that for a device without a data sheet."""
        found = data_sheet.peaks(self.machine)
        if self.sheet.device is None:
            self.sheet = self.sheet._replace(device=data_sheet.sheet_from(found, self.machine))
        yield from found

    def training_speed(self) -> Iterator[object]:
        """Time training steps of each model, and their parts beside the estimate."""
        for model in self.options.models:
            for compiled in self.compiled:
                yield attempt(model, partial(self._time_training, model, compiled=compiled))

    def _time_training(self, model: str, *, compiled: bool) -> object:
        if self.sheet.device is None:
            raise RuntimeError("the peaks of the device are not known")
        config = speed.run_settings(model, self.config, compiled=compiled)
        found, measured = speed.training_speed(model, config, self.sheet.device, self.options.timed_steps)
        self.measured.append(measured)
        return found

    def decoding_speed(self) -> Iterator[object]:
        """Time beam search with each model."""
        for model in self.options.models:
            yield attempt(model, partial(speed.decoding_speed, model, self.machine))

    def run_on_one_device(self) -> Iterator[object]:
        """Train the first model for some hundred steps, as a real run does."""
        model = self.options.models[0]
        config = speed.run_settings(model, self.config, compiled=self.compiled[-1])
        yield together.long_run(model, config, prepare_machine(config.runtime), self.options.run_steps)

    def several_devices(self) -> Iterator[object]:
        """Check and time what all devices do together, a long run included."""
        count = self.options.devices or (torch.cuda.device_count() if self.device.type == "cuda" else 1)
        if count < 2:
            yield {"name": "skipped", "reason": "there is one device"}
            return
        training = self.config.training
        task = together.Task(
            self.device.type,
            self.options.models[0],
            self.compiled[-1],
            training.batch_tokens,
            training.device_tokens,
            self.options.run_steps,
        )
        yield from together.compare(task, count, seconds=110)

    def fastest_settings(self) -> Iterator[Row]:
        """Yield the table of settings of the first model, made in the time that is left."""
        config = speed.run_settings(self.options.models[0], self.config)
        choices = [choice.setting for choice in open_choices(config, self.device.type)]
        left = self.end - time.monotonic()
        seconds = min(left / (len(choices) + 1), SECONDS_PER_CHOICE[self.device.type])
        bench = TrainingBench(config, speed.training_text(), (speed.WORDS, speed.WORDS))
        if self.device.type == "cpu":
            bench.fit_batch(seconds / STEPS_PER_CHOICE, limit=seconds)
        rows = list[Row]()

        def add(row: Row) -> None:
            rows.append(row)
            if time.monotonic() > self.end:
                raise OutOfTimeError

        try:
            Search(bench, seconds, add, max_seconds_to_open=left / 2).run(choices)
        finally:
            yield from rows
