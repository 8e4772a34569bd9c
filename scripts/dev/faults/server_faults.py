"""Faults of the server: each ends with the translation that it gave before, on the same port."""

import os
import random
import re
import resource
import shutil
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from faults.busy_server import COMMAND, RECOVERY_SECONDS, STATUSES, TEXT, Server
from faults.recovery import LostError, NeverInjectedError, Outcome, Trial, Verdict
from faults.sandbox import Sandbox
from shared.processes import is_alive, memory

FULL_DISK_SECONDS = 5
TOO_LARGE = 413
"""The status of a request for which the model has too little memory."""
LARGE_TEXT = "\n".join([" ".join([TEXT] * 10)] * 50)
"""Costs less than the server accepts with 16 hypotheses per sentence, so that the model gets it; more sentences need no
more memory, because few of them are translated together."""


def faults_of_server(rng: random.Random) -> Iterator[Trial]:
    """Yield the trials; none if the packages of the server are not installed."""
    if not all(find_spec(package) for package in ("starlette", "uvicorn", "prometheus_client", "python_multipart")):
        return
    for moment in (rng.uniform(0, 1) for _ in range(3)):
        yield _trial("model process killed", f"after {moment:.2f} s", _signalled(signal.SIGKILL, moment))
    for moment in (rng.uniform(0, 1) for _ in range(2)):
        yield _trial(
            "model process hangs", f"after {moment:.2f} s", _signalled(signal.SIGSTOP, moment), "serve.timeout=4"
        )
    for moment in (rng.uniform(0, 1) for _ in range(2)):
        yield Trial("server killed", COMMAND, f"after {moment:.2f} s", _killed(moment))
        yield Trial("server gets SIGTERM", COMMAND, f"after {moment:.2f} s", _terminated(moment))
    for place in (rng.uniform(0.1, 0.9) for _ in range(2)):
        yield _trial("model replaced under the server", f"damaged at {place:.0%}", _replaced(place))
    for size in (rng.randrange(0, 1000) for _ in range(2)):
        yield _trial("memory of the model runs out", f"with {size} KiB left", _without_memory(size))
    for size in (rng.randrange(1, 200) for _ in range(2)):
        what = f"with {size} MiB more than the server"
        yield _trial("no memory to load the model again", what, _without_memory_to_load(size))
    yield _trial("server with a full disk", "no file may grow", _with_full_disk)


def _trial(kind: str, what: str, hurt: Callable[[Server, Path], None], *settings: str) -> Trial:
    """Return a trial that hurts a busy server, which must then translate as before."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        with Server(sandbox, folder, *settings) as server:
            _, text = server.ask()
            with server.busy():
                hurt(server, folder)
                server.expect(text)
            server.stop()
        return Outcome(Verdict.RECOVERED, f"clients got {sorted(server.statuses)}")

    return Trial(kind, COMMAND, what, run_trial)


def _signalled(number: signal.Signals, moment: float) -> Callable[[Server, Path], None]:
    def hurt(server: Server, _: Path) -> None:
        time.sleep(moment)
        before = server.model()
        os.kill(before, number)
        _wait_until(lambda: not is_alive(before), "the process was not replaced")

    return hurt


def _wait_until(true: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + RECOVERY_SECONDS
    while not true():
        if time.monotonic() > end:
            raise LostError(otherwise)
        time.sleep(0.1)


def _killed(moment: float) -> Callable[[Sandbox, Path], Outcome]:
    """Kill the server itself: its model ends too, and the same port serves again."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        with Server(sandbox, folder) as server:
            _, text = server.ask()
            with server.busy():
                time.sleep(moment)
                model = server.model()
                server.process.kill()
                server.process.wait()
        _wait_until(lambda: not is_alive(model), "the process of the model outlives the server")
        with Server(sandbox, folder, port=server.port) as again:
            again.expect(text)
            again.stop()
        return Outcome(Verdict.RECOVERED)

    return run_trial


def _terminated(moment: float) -> Callable[[Sandbox, Path], Outcome]:
    """Send SIGTERM while clients wait: requests that were accepted are answered."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        answers: list[tuple[int, str]] = []
        with Server(sandbox, folder) as server:
            waiting = threading.Thread(target=lambda: answers.append(server.ask(text="\n".join([TEXT] * 400))))
            _, text = server.ask()
            waiting.start()
            _wait_for_request(server.port)
            time.sleep(moment / 4)
            answered_before = not waiting.is_alive()
            server.stop()
            waiting.join()
        if answers != [(200, "\n".join([text] * 400))]:
            raise LostError(f"an accepted request got {answers[0][0]}: {answers[0][1][:200]}")
        if answered_before:
            raise NeverInjectedError("the request was answered before the signal")
        return Outcome(Verdict.RECOVERED)

    return run_trial


def _wait_for_request(port: int) -> None:
    """Wait until more than the first sentence was accepted."""
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
            found = re.search(r"^nmt_sentences_total\S* (\S+)$", response.read().decode(), re.MULTILINE)
        if found and float(found[1]) > 1:
            return
        time.sleep(0.02)


def _replaced(place: float) -> Callable[[Server, Path], None]:
    """Damage the model's file: the running process does not notice; the next one refuses it until it is restored."""

    def hurt(server: Server, folder: Path) -> None:
        file = (folder / "outputs/toy/checkpoints/averaged/model.safetensors").resolve()
        good = shutil.copy(file, folder / "good")
        content = bytearray(file.read_bytes())
        content[int(place * len(content))] ^= 0xFF
        (folder / "bad").write_bytes(content)
        (folder / "bad").replace(file)
        if (found := server.ask()[0]) != 200:
            raise LostError(f"the loaded model does not answer: {found}")
        os.kill(server.model(), signal.SIGKILL)
        _wait_until(lambda: file.name in server.log.read_text(), "the damaged file is not named")
        Path(good).replace(file)

    return hurt


def _without_memory(kibibytes: int) -> Callable[[Server, Path], None]:
    """Let the memory of the model's process grow hardly at all while it gets its largest requests."""

    def hurt(server: Server, _: Path) -> None:
        pid = server.model()
        before = resource.prlimit(pid, resource.RLIMIT_DATA)
        resource.prlimit(pid, resource.RLIMIT_DATA, (memory(pid, "VmData") + (kibibytes << 10), before[1]))
        found = [server.ask(text=LARGE_TEXT, beam=16) for _ in range(3)]
        alive = is_alive(pid)
        expected = {*STATUSES, TOO_LARGE} - ({500} if alive else set())  # 500 only for a sentence that ends the process
        if odd := {status for status, _ in found} - expected:
            raise LostError(f"large requests got {odd}")
        if not any(status in (500, 503, TOO_LARGE) for status, _ in found):
            raise NeverInjectedError("the largest requests had memory enough")
        if alive:
            resource.prlimit(pid, resource.RLIMIT_DATA, before)

    return hurt


def _without_memory_to_load(mebibytes: int) -> Callable[[Server, Path], None]:
    """Kill the model's process, and give its successors, which inherit the server's limits, too little memory."""

    def hurt(server: Server, _: Path) -> None:
        before = resource.prlimit(server.process.pid, resource.RLIMIT_DATA)
        size = memory(server.process.pid, "VmData") + (mebibytes << 20)
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (size, before[1]))
        os.kill(server.model(), signal.SIGKILL)
        end = time.monotonic() + RECOVERY_SECONDS
        while not re.search("cannot be loaded|while it loaded the model", server.log.read_text()):
            if server.ask()[0] == 200 or time.monotonic() > end:
                raise NeverInjectedError("the model had memory enough")
            time.sleep(0.1)
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, before)

    return hurt


def _with_full_disk(server: Server, _: Path) -> None:
    """Kill the model's process while no file may grow: none can be loaded then, and the server cannot even log that."""
    before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    os.kill(server.model(), signal.SIGKILL)
    end = time.monotonic() + FULL_DISK_SECONDS
    while time.monotonic() < end:
        if (found := server.ask()[0]) not in STATUSES:
            raise LostError(f"clients got {found}")
        time.sleep(0.2)
    if server.log.read_text():
        raise NeverInjectedError("the log could grow")
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
