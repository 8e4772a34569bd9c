"""Faults of the server: each ends with the translation that it gave before, on the same port."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recovery import LostError, Outcome, Trial, Verdict
from sandbox import SETTINGS, Sandbox

COMMAND = "serve"
TEXT = "the man sees the old tree"
CLIENTS = 4
START_SECONDS = RECOVERY_SECONDS = 240
"""A shared machine may need minutes to start a process."""
STATUSES = (200, 429, 500, 503)
"""What clients may get while there is a fault."""


class Server:
    """A server, and clients that send requests to it all the time."""

    def __init__(self, folder: Path, *settings: str, port: int = 0) -> None:
        overrides = [*SETTINGS, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs", *settings]
        self.log = folder / "serve.log"
        with self.log.open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nmt", COMMAND, *overrides, f"serve.port={port}"],
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        assert self.process.stdout
        found = re.search(r":(\d+)$", self.process.stdout.readline().strip())
        if not found:
            raise LostError(f"the server does not start: {self.log.read_text()}")
        self.port = int(found[1])
        self.statuses: set[int] = set()
        self._stopped = threading.Event()
        self._clients = [threading.Thread(target=self._ask_all_the_time, daemon=True) for _ in range(CLIENTS)]

    def ask(self, **fields: Any) -> tuple[int, str]:
        """Return the status and the translation or the error; status 0 without an answer."""
        body = json.dumps({"text": TEXT, **fields}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/translate", body)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.load(response)["translations"][0]["text"]
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]
        except (OSError, ValueError):
            return 0, ""

    def expect(self, text: str) -> None:
        """Wait until the server translates as before."""
        end = time.monotonic() + RECOVERY_SECONDS
        while (found := self.ask()) != (200, text):
            if time.monotonic() > end or found[0] not in (*STATUSES, 0):
                raise LostError(f"the server does not recover: {found}")
            time.sleep(0.2)

    def model(self) -> int:
        """Return the id of the process of the model."""
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        raise LostError("the model has no process")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Send requests from several clients during this block."""
        for client in self._clients:
            client.start()
        yield
        self._stopped.set()
        for client in self._clients:
            client.join()
        if odd := self.statuses - {*STATUSES, 0}:
            raise LostError(f"clients got {odd}")

    def stop(self) -> None:
        """End the server by SIGTERM; make sure that it exits cleanly and has logged no text and no traceback."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(RECOVERY_SECONDS)
        log = self.log.read_text()
        if code or "Traceback" in log or TEXT in log:
            raise LostError(f"exit code {code}: {log}")

    def _ask_all_the_time(self) -> None:
        while not self._stopped.is_set():
            self.statuses.add(self.ask()[0])


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
    for size in (rng.randrange(1, 60) for _ in range(2)):
        yield _trial("memory of the model runs out", f"with {size} MiB left", _without_memory(size))
    yield Trial("server with a full disk", COMMAND, "no file may grow", _with_full_disk)


def _trial(kind: str, what: str, hurt: Callable[[Server, Path], None], *settings: str) -> Trial:
    """Return a trial that hurts a busy server, which must then translate as before."""

    def run_trial(_: Sandbox, folder: Path) -> Outcome:
        server = Server(folder, *settings)
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
        end = time.monotonic() + RECOVERY_SECONDS
        while _alive(before):
            if time.monotonic() > end:
                raise LostError("the process was not replaced")
            time.sleep(0.1)

    return hurt


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _killed(moment: float) -> Callable[[Sandbox, Path], Outcome]:
    """Kill the server itself: its model ends too, and the same port serves again."""

    def run_trial(_: Sandbox, folder: Path) -> Outcome:
        server = Server(folder)
        _, text = server.ask()
        with server.busy():
            time.sleep(moment)
            model = server.model()
            server.process.kill()
            server.process.wait()
        end = time.monotonic() + RECOVERY_SECONDS
        while _alive(model):
            if time.monotonic() > end:
                raise LostError("the process of the model outlives the server")
            time.sleep(0.1)
        again = Server(folder, port=server.port)
        again.expect(text)
        again.stop()
        return Outcome(Verdict.RECOVERED)

    return run_trial


def _terminated(moment: float) -> Callable[[Sandbox, Path], Outcome]:
    """Send SIGTERM while clients wait: requests that were accepted are answered."""

    def run_trial(_: Sandbox, folder: Path) -> Outcome:
        server = Server(folder)
        answers: list[tuple[int, str]] = []
        waiting = threading.Thread(target=lambda: answers.append(server.ask(text="\n".join([TEXT] * 400))))
        _, text = server.ask()
        waiting.start()
        _wait_for_request(server.port)
        time.sleep(moment / 4)
        server.stop()
        waiting.join()
        if answers != [(200, "\n".join([text] * 400))]:
            raise LostError(f"an accepted request got {answers[0][0]}: {answers[0][1][:200]}")
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
        end = time.monotonic() + RECOVERY_SECONDS
        while str(file.name) not in server.log.read_text():
            if time.monotonic() > end:
                raise LostError(f"the damaged file is not named: {server.log.read_text()}")
            time.sleep(0.2)
        Path(good).replace(file)

    return hurt


def _without_memory(megabytes: int) -> Callable[[Server, Path], None]:
    """Limit the memory of the model's process while it gets its largest requests; then lift the limit."""

    def hurt(server: Server, _: Path) -> None:
        pid = server.model()
        used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (used + (megabytes << 20), before[1]))
        found = {server.ask(text="\n".join([TEXT * 10] * 400), beam=16)[0] for _ in range(3)}
        if odd := found - {*STATUSES}:
            raise LostError(f"large requests got {odd}")
        if _alive(pid):
            resource.prlimit(pid, resource.RLIMIT_AS, before)

    return hurt


def _with_full_disk(_: Sandbox, folder: Path) -> Outcome:
    """Serve while no file may grow: the server writes none."""
    server = Server(folder)
    for pid in (server.process.pid, server.model()):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    _, text = server.ask()
    with server.busy():
        server.expect(text)
    server.stop()
    if server.statuses - {200}:
        raise LostError(f"clients got {server.statuses}")
    return Outcome(Verdict.RECOVERED)
