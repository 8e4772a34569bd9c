"""A stub of OpenAI's chat API on 127.0.0.1 that translates the toy language, and fails as it is told."""

import json
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from tests.integration.toy import WORDS

TO_ENGLISH = {german: english for english, german in WORDS.items()}
HANG, RESET, CUT = "hang", "reset", "cut"
"""Failures besides a response with another status or body: no answer, no connection any more, half an answer."""


def german(line: str) -> str:
    return " ".join(WORDS.get(word, word) for word in line.split())


class Identifier:
    """Knows the languages of the toy by its words, as py3langid knows languages."""

    labels = ("de", "en", "fr")

    def rank(self, text: str) -> list[tuple[str, float]]:
        counts = {"de": 0.1, "en": 0.1, "fr": 0.1}
        for word in text.split():
            counts["de" if word in TO_ENGLISH else "en" if word in WORDS else "fr"] += not word.isdecimal()
        return sorted(((each, n / sum(counts.values())) for each, n in counts.items()), key=lambda pair: -pair[1])

    def classify(self, text: str) -> tuple[str, float]:
        return self.rank(text)[0]


class ChatStub(ThreadingHTTPServer):
    """Answers the last line of a prompt; records what is asked, and what it has answered well."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.failures: dict[str, list[Any]] = {}
        """By line, what goes wrong with each request: None, a body, or status, body and Retry-After, or functions."""
        self.always: Any = None
        """What always goes wrong, if anything does."""
        self.answers: dict[str, Any] = {}
        """By line: other answers, each a text, or a text and the reason for its end."""
        self.seconds, self.ignores_n, self.usage = 0.0, False, {"prompt_tokens": 60, "completion_tokens": 10}
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.times: dict[str, list[float]] = {}
        self.answered = Counter[str]()
        self.busy, self.most_busy, self.lock, self.over = 0, 0, Lock(), Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that have gone."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: ChatStub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        line, stub = body["messages"][-1]["content"].splitlines()[-1], self.server
        with stub.lock:
            stub.bodies.append(body)
            stub.keys.add(self.headers.get("Authorization", ""))
            stub.times.setdefault(line, []).append(time.monotonic())
            stub.busy += 1
            stub.most_busy = max(stub.busy, stub.most_busy)
            planned = stub.failures.get(line)
            failure = stub.always or (planned.pop(0) if planned else None)
        try:
            stub.over.wait(stub.seconds)
            self._fail(failure) if failure is not None else self._answer(body, line)
        finally:
            stub.busy -= 1

    def _fail(self, failure: Any) -> None:
        self.close_connection = failure in (HANG, RESET, CUT)
        if failure == HANG:
            self.server.over.wait(5)
        elif failure == RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif failure == CUT:
            self._send(200, '{"choices": [{"mess', extra=100)
        elif isinstance(failure, str):
            self._send(200, failure)
        else:
            self._send(*(part() if callable(part) else part for part in failure))

    def _answer(self, body: dict[str, Any], line: str) -> None:
        stub = self.server
        found = stub.answers.get(line, german(line))
        found = found if isinstance(found, list) else [found]
        count = 1 if stub.ignores_n else body["n"]
        with stub.lock:
            taken = [found[(stub.answered[line] + number) % len(found)] for number in range(count)]
            stub.answered[line] += count
        choices = []
        for each in taken:
            text, end = each if isinstance(each, tuple) else (each, "stop")
            choices.append({"message": {"role": "assistant", "content": text}, "finish_reason": end})
        self._send(200, json.dumps({"choices": choices, **({"usage": stub.usage} if stub.usage else {})}))

    def _send(self, status: int, text: str, retry_after: str = "", extra: int = 0) -> None:
        self.send_response(status)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(text.encode()) + extra))
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def chat_stub() -> Iterator[ChatStub]:
    """Run a stub during this block."""
    with ChatStub() as stub:
        thread = Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield stub
        finally:
            stub.over.set()
            stub.shutdown()
            thread.join()
