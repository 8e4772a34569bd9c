"""Stages, two of which run at a time, each with a time limit, a log and a line in the table at the end."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Timer

ROOT = Path(__file__).resolve().parents[3]
AT_ONCE = 2
"""Stages that run side by side: each waits for processes, servers and disks much of its time."""
LOG_LINES = 40
"""Lines of its log that a failed stage prints."""
OF_MAKE = ("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "MAKEFILES", "ARGS")
"""Variables by which the make that runs the stages would change a make that a stage runs."""


class StageError(Exception):
    """A stage failed; the message says what did."""


class SkipStage(Exception):  # noqa: N818 (nothing is wrong)
    """A stage cannot run here; the message says why."""


@dataclass
class Context:
    """What a stage works with: a folder of its own, a log, and the words for pytest."""

    folder: Path
    log: Path
    seconds: float
    words: Sequence[str] = ()
    name: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    """How often something was skipped, by reason."""
    ends: float = 0.0
    running: set["subprocess.Popen[str]"] = field(default_factory=set)
    cpu_seconds: list[float] = field(default_factory=list)
    """What each command and its children computed."""

    def __post_init__(self) -> None:
        """Start the clock, unless this is a copy."""
        self.ends = self.ends or time.monotonic() + self.seconds

    def say(self, text: str) -> None:
        """Print a line of progress, and write it to the log."""
        print(f"  {self.name}: {text}", flush=True)
        with self.log.open("a", encoding="utf-8") as log:
            print(f"== {text}", file=log)

    def stop(self) -> None:
        """End the commands that run in other threads, and let nothing more begin."""
        self.ends = 0.0
        for process in list(self.running):
            end_group(process)

    def run(
        self,
        *command: str | Path,
        cwd: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        text: str = "",
        show: bool = False,
        codes: Iterable[int] = (0,),
    ) -> str:
        """Run a command until the end of the stage's time, and return its output, which also goes to the log.

        Raise StageError if it ends with another exit code than `codes`.
        """
        words = [str(word) for word in command]
        shown = shlex.join(words) if len(words) > 1 else words[0]
        process = subprocess.Popen(
            words, cwd=cwd, env=clean_environment(environment), text=True, errors="replace", start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.running.add(process)
        late = Timer(max(0.0, self.ends - time.monotonic()), end_group, [process])
        late.start()
        output = []
        try:
            assert process.stdin
            assert process.stdout
            with suppress(BrokenPipeError), process.stdin as given:
                given.write(text)
            with self.log.open("a", encoding="utf-8") as log:
                print(f"$ {shown}", file=log, flush=True)
                for line in process.stdout:
                    output.append(line)
                    log.write(line)
                    if show:
                        print(line, end="", flush=True)
            code = self._wait(process)
        finally:
            late.cancel()
            end_group(process)
            self.running.discard(process)
        if time.monotonic() >= self.ends:
            raise StageError(f"not finished after {self.seconds:,.0f} s: {shown}")
        if code not in codes:
            raise StageError(f"exit code {code}: {shown}")
        return "".join(output)

    def _wait(self, process: "subprocess.Popen[str]") -> int:
        """Return the exit code of a process, and note what it computed."""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds.append(used.ru_utime + used.ru_stime)
        return process.returncode


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of commands: offline, without this program's make, with `more` variables."""
    found = {name: value for name, value in os.environ.items() if name not in (*OF_MAKE, "PYTHONPATH", "VIRTUAL_ENV")}
    return {**found, "WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **(more or {})}


def end_group(process: "subprocess.Popen[str]") -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Stage:
    """A named part of `make test-all`."""

    name: str
    what: str
    run: Callable[[Context], None]
    minutes: float
    """What it takes on two cores, while another stage runs."""
    most_minutes: float
    """It is ended after this time, which allows for a slow or busy machine."""
    installs: bool = False
    """Whether other stages need what it installs, so that it runs alone."""


@dataclass(frozen=True)
class Result:
    """How a stage ended."""

    name: str
    outcome: str
    seconds: float
    cpu_seconds: float = 0.0
    """What the commands computed, which does not depend on other work on the machine."""
    skipped: Mapping[str, int] = field(default_factory=dict)


def run_stages(stages: Sequence[Stage], words: Sequence[str] = ()) -> list[Result]:
    """Run all stages, also those after a failed one; keep the log of a failed one."""
    started: list[Context] = []
    stopped = Event()
    done = {each.name: _run_stage(each, words, started, stopped) for each in stages if each.installs}
    others = [each for each in stages if not each.installs]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        results = pool.map(lambda each: _run_stage(each, words, started, stopped), others)
        done |= {result.name: result for result in results}
    finally:
        stopped.set()
        for context in started:
            context.stop()
        pool.shutdown(cancel_futures=True)
    return [done[each.name] for each in stages]


def _run_stage(stage: Stage, words: Sequence[str], started: list[Context], stopped: Event) -> Result:
    print(f"== {stage.name}: {stage.what} ==", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"nmt-{stage.name}-", ignore_cleanup_errors=True) as name:
        log = Path(tempfile.gettempdir()) / f"nmt-test-all-{stage.name}-{os.getpid()}.log"
        context = Context(Path(name), log, 60 * stage.most_minutes, words, stage.name)
        started.append(context)
        log.touch()
        outcome = "passed"
        try:
            if not stopped.is_set():
                stage.run(context)
        except SkipStage as reason:
            outcome = "skipped"
            context.skipped[f"stage {stage.name}: {reason}"] += 1
        except Exception as error:
            outcome = "failed"
            if not stopped.is_set():
                _show_failure(stage.name, log, error)
        if outcome != "failed":
            log.unlink()
    seconds = time.monotonic() - began
    return Result(stage.name, outcome, seconds, sum(context.cpu_seconds), dict(context.skipped))


def _show_failure(name: str, log: Path, error: Exception) -> None:
    lines = [f"  | {line}" for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]]
    kind = "" if isinstance(error, StageError) else f"{type(error).__name__}: "
    print("\n".join((*lines, f"  {name}: failed: {kind}{error}\n  the whole log: {log}")), flush=True)


def summary(results: Sequence[Result], seconds: float) -> list[str]:
    """Return a table of the stages, and one line: how many passed, and what was skipped and why."""
    lines = [f"{'stage':10} {'':8} {'time':>9} {'CPU time':>11}"]
    lines += [
        f"{result.name:10} {result.outcome:8} {result.seconds:7,.0f} s {result.cpu_seconds:9,.0f} s"
        for result in results
    ]
    skipped: Counter[str] = Counter()
    for result in results:
        skipped.update(result.skipped)
    passed = sum(result.outcome == "passed" for result in results)
    minutes, rest = divmod(round(seconds), 60)
    said = "; ".join(f"{count} {reason}" for reason, count in sorted(skipped.items())) or "nothing"
    return [*lines, f"test-all: {passed} of {len(results)} stages passed in {minutes} min {rest} s; skipped: {said}"]


def refuse(message: str) -> int:
    """Print what the user has to change, and return the exit code for it."""
    print(f"test_all: {message}", file=sys.stderr)
    return 2
