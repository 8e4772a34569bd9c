"""A server, and clients that send requests to it all the time."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from faults.recovery import LostError
from faults.sandbox import Sandbox
from shared.processes import model_processes

COMMAND = "serve"
TEXT = "the man sees the old tree"
CLIENTS = 4
RECOVERY_SECONDS = 240
"""A shared machine may need minutes to start a process."""
RETRY_SECONDS = 0.1
STATUSES = (200, 429, 500, 503)
"""What clients may get while there is a fault."""


class Server:
    """A server, and clients that send requests to it all the time."""

    def __init__(self, sandbox: Sandbox, folder: Path, *settings: str, port: int = 0) -> None:
        overrides = [*sandbox.overrides(COMMAND, folder), *settings]
        self.log = folder / "serve.log"
        with self.log.open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nmt", COMMAND, *overrides, f"serve.port={port}"],
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        assert self.process.stdout
        found = re.search(r":(\d+)$", self.process.stdout.readline().strip())
        if not found:
            raise LostError(f"the server does not start: {self.log.read_text().strip()}")
        self.port = int(found[1])
        self.statuses: set[int] = set()
        self._stopped = threading.Event()
        self._clients = [threading.Thread(target=self._ask_all_the_time, daemon=True) for _ in range(CLIENTS)]

    def __enter__(self) -> Self:
        """Return the server, which ends with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server if it still runs; its model ends with it."""
        self.process.kill()
        self.process.communicate()

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
        for process in model_processes(self.process.pid):
            return process
        raise LostError("the model has no process")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Send requests from several clients during this block."""
        for client in self._clients:
            client.start()
        try:
            yield
        finally:
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
            status, _ = self.ask()
            self.statuses.add(status)
            if status != 200:  # otherwise the server would spend its time on refusals
                self._stopped.wait(RETRY_SECONDS)
