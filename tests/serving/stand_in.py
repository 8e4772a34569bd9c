"""A server for the tests of the page: it answers word by word, and can be slow, busy or broken."""

import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from threading import Thread
from typing import Any, NamedTuple

from nmt.serving.app import PAGE
from nmt.serving.server import HEADERS

Json = dict[str, Any]

WORDS = {
    "the": "der", "a": "ein", "little": "kleine", "dog": "Hund", "cat": "Kater", "sees": "sieht", "house": "Haus",
    "man": "Mann", "walks": "geht", "his": "seinen", "in": "im", "park": "Park", "is": "ist", "old": "alte",
}  # fmt: skip
BIG_WORDS = {**WORDS, "little": "winzige", "walks": "spaziert"}
CHOICES = ("kleine", "winzige", "junge")
PROBABILITIES = (0.95, 0.55, 0.21)


class Failure(NamedTuple):
    """An answer that is not a result."""

    status: int
    message: str
    retry_after: int = 0


class StandIn(ThreadingHTTPServer):
    """Records every request; `delays` holds seconds by text, `failures` what the next translations answer."""

    daemon_threads = True

    def __init__(self, *, key: str = "", models: tuple[str, ...] = ("base", "big", "int8")) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.key = key
        self.models = models
        self.delays: dict[str, float] = {}
        self.failures: list[Failure] = []
        self.requests: list[tuple[str, Json]] = []
        Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def translated(self) -> list[Json]:
        """Return the translations that were asked for."""
        return [body for path, body in self.requests if path == "/v1/translate"]


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: StandIn

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.send({"models": [model(name) for name in self.server.models]})
        elif (file := PAGE / (self.path[1:] or "index.html")).is_file():
            self.answer(200, file.read_bytes(), {**HEADERS, "Content-Type": str(guess_type(file.name)[0])})
        else:
            self.send({"error": "there is no such page"}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body))
        time.sleep(self.server.delays.get(body["text"], 0))
        if self.server.key and body.get("api_key") != self.server.key:
            self.send({"error": "this server needs an API key"}, 401)
        elif self.server.failures:
            failure = self.server.failures.pop(0)
            wait = {"Retry-After": str(failure.retry_after)} if failure.retry_after else {}
            self.send({"error": failure.message}, failure.status, wait)
        elif self.path == "/v1/choices":
            shares = [{"text": word, "probability": 0.6 / 2**place} for place, word in enumerate(CHOICES)]
            self.send({"choices": shares})
        else:
            beginning = (body.get("beginnings") or [""])[0]
            self.send({"model": body["model"], "translations": [translation(body["text"], body["model"], beginning)]})

    def send(self, body: Json, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.answer(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})

    def answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page has dropped the request

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def model(name: str) -> Json:
    torch = name != "int8"
    return {
        "name": name,
        "source": "en",
        "target": "de",
        "default": name == "base",
        "engine": "torch" if torch else "ctranslate2",
        "attention": torch,
        "choices": torch,
    }


def translation(text: str, name: str, beginning: str) -> Json:
    found = [sentence(each, name, beginning) for each in re.finditer(r"\S[^.!?\n]*[.!?]?", text)]
    return {"text": "", "sentences": found}


def sentence(match: re.Match[str], name: str, beginning: str) -> Json:
    words = match[0].split()
    dictionary = BIG_WORDS if name == "big" else WORDS
    first = [translated(word, dictionary) for word in words]
    forced = beginning.split()
    best = [*forced, *first[len(forced) :]]
    others = [[*best[:-1], "anders."], [*forced, *(["Doch", *best] if not forced else [*first[len(forced) :], "so."])]]
    found = [candidate(each, words, name) for each in (best, *others)]
    start = len(match.string[: match.start()].encode("utf-16-le")) // 2
    length = len(match[0].encode("utf-16-le")) // 2
    return {"start": start, "end": start + length, "source": match[0], "candidates": found}


def translated(word: str, dictionary: dict[str, str]) -> str:
    plain = word.strip(".!?").lower()
    return word.lower().replace(plain, dictionary.get(plain, f"{plain}en"))


def candidate(words: list[str], source: list[str], name: str) -> Json:
    weights = [[0.8 if place == index else 0.2 / len(source) for index in range(len(source))] for place in range(50)]
    details = {
        "source_words": source,
        "words": [{"text": word, "probability": PROBABILITIES[len(word) % 3]} for word in words],
    }
    attention = {"attention": weights[: len(words)]} if name != "int8" else {}
    return {"text": " ".join(words), "score": -0.1 * len(words), **details, **attention}
