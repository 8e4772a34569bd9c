"""Targets: requests to every route of the server, and the texts that reach its models."""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.campaign import Attempt
from fuzz.prepared import tiny_run
from fuzz.strategies import FRAGMENTS, altered, damaged, json_values, texts
from nmt.config.commands import ServeConfig
from nmt.decoding.load_engine import load_engine
from nmt.decoding.request import Request

KEY = b"the key of the server"
ORIGIN = b"https://example.org"
"""The origin whose pages may use the server with keys."""
TRANSLATE = {"text": ["A dog. A cat!\n\nA house", ""], "model": "tiny", "nbest": 2, "beam": 4, "beginnings": ["", "x "]}
GOOD: dict[str, dict[str, Any]] = {
    "/translate": {
        "q": "A <b>dog</b>.", "source": "en", "target": "de", "format": "html", "alternatives": 2,
        "api_key": KEY.decode(),
    },
    "/detect": {"q": "A dog."},
    "/v1/translate": {**TRANSLATE, "terms": [["dog", "Hund"]], "details": True, "alignments": False},
    "/v1/choices": {"text": "A dog.", "model": "tiny", "beginning": "Ein", "count": 3},
    "/languages": {}, "/health": {}, "/frontend/settings": {}, "/v1/models": {}, "/metrics": {}, "/": {},
}  # fmt: skip
"""Good bodies by route."""
STATUSES = (200, 400, 401, 403, 404, 405, 408, 413, 421, 429)
"""The statuses that a request can cause. 500 is a mistake of the server."""
JSON_TYPES = ("application/json", "application/json; charset=utf-16", "text/plain", "")
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data")
PATHS = [*GOOD, *GOOD, "/v1/../metrics", "//", "/translate/", "/%00", "/../../etc/passwd", "/page.css", "*", ""]
TIME_LIMIT = 20
"""Seconds after which a request counts as one without an answer."""


@dataclass(frozen=True)
class Call:
    """A request."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    parts: list[bytes]
    """The body, as it arrives."""


def routes(_: Path) -> Attempt:
    """Try requests: each gets an answer of one of the known statuses, and an error is one line of JSON.

    Every input is sent as each type of content, to a server with keys and one without: 14 requests.
    """
    from nmt.features.serving.app import application  # noqa: PLC0415 - the packages of the server are optional
    from nmt.features.serving.metrics import Metrics  # noqa: PLC0415
    from nmt.features.serving.service import Model, Service  # noqa: PLC0415

    config = ServeConfig(max_bytes=2_000, max_sentences=20, wait_ms=0)

    def check(call: Call) -> None:
        asyncio.run(send_all(call))

    async def send_all(call: Call) -> None:
        metrics = Metrics()
        model = Model("tiny", config, _Echo(), metrics)
        with_keys = application(Service(replace(config, origins=[ORIGIN.decode()]), [model], metrics), [KEY])
        work = asyncio.ensure_future(model.batcher.work())
        for app in (application(Service(config, [model], metrics)), with_keys):
            for kind in (*JSON_TYPES, *FORM_TYPES):
                typed = replace(call, headers=[(b"content-type", kind.encode()), *call.headers])
                check_answer(*await asyncio.wait_for(_send(app, typed), TIME_LIMIT))
                assert not work.done(), "the queue has stopped"
                assert not model.batcher.waiting, "a sentence is left in the queue"

    def check_answer(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        assert status in STATUSES, (status, body)
        if status != 200:
            error = json.loads(body)["error"]
            assert error == " ".join(error.split()) != "", error
            assert "Traceback" not in error
        elif dict(headers)[b"content-type"] == b"application/json":
            json.loads(body)

    return Attempt(_calls(), check)


def answers(folder: Path) -> Attempt:
    """Try odd sentences on a model, with every task: there are as many answers as sentences, and JSON can hold them."""
    from nmt.compute.machine import prepare_machine  # noqa: PLC0415
    from nmt.features.serving.requests import Batch, Failure, Task  # noqa: PLC0415
    from nmt.features.serving.worker import answer  # noqa: PLC0415

    config = tiny_run(folder)
    model = load_engine(config, prepare_machine(config.runtime))

    def check(value: tuple[list[tuple[str, str]], int, bool, bool, int]) -> None:
        pairs, nbest, details, alignments, choices = value
        requests = [Request(text, beginning) for text, beginning in pairs]
        found = answer(model, Batch(Task(nbest, None, details, alignments, choices), requests))
        answered = [each for each in found if not isinstance(each, Failure)]
        assert answered == found
        assert len(found) == len(requests)
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        for each in answered:
            assert len(each["choices"] if choices else each["candidates"]) <= max(nbest, choices)

    pairs = st.lists(st.tuples(texts(), st.just("") | texts()), min_size=1, max_size=4)
    return Attempt(st.tuples(pairs, st.integers(1, 3), st.booleans(), st.booleans(), st.sampled_from([0, 0, 3])), check)


class _Echo:
    """A model that repeats what it is asked."""

    def __init__(self) -> None:
        from nmt.features.serving.requests import ModelFacts  # noqa: PLC0415

        self.facts = ModelFacts("en", "de", "torch", "cpu", attention=True, choices=True, terms=True, hypotheses=4)
        self.ready, self.parallel = True, 1

    async def run(self, batch: Any) -> list[Any]:
        if batch.task.choices:
            return [{"choices": [{"text": each.text, "probability": 0.5}]} for each in batch.requests]
        return [{"candidates": [{"text": each.text, "score": -1.0}] * batch.task.nbest} for each in batch.requests]


async def _send(app: Any, call: Call) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Pass a request to an application, as a server would; return status, headers and body of the answer."""
    scope = {
        "type": "http", "http_version": "1.1", "method": call.method, "path": call.path, "raw_path": call.path.encode(),
        "query_string": call.query, "headers": call.headers, "scheme": "http", "root_path": "",
        "server": ("test", 80), "client": ("test", 1),
    }  # fmt: skip
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in call.parts]
    waiting += [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message["body"] for message in sent[1:])
    return sent[0]["status"], sent[0]["headers"], body


@st.composite
def _calls(draw: DrawFn) -> Call:
    path = draw(st.sampled_from(PATHS) | texts().map(lambda text: "/" + text))
    values = draw(_values(GOOD.get(path, {})))
    kind = draw(st.sampled_from(["json", "json", "form", "multipart", "query", "raw"]))
    body, query = b"", draw(st.sampled_from([b"", b"", b"q=%ff&source=en&target", b"&&==", b"%", "q=é".encode()]))
    match kind:
        case "json":
            body = json.dumps(values).encode()
        case "form":
            body = urlencode(_flat(values)).encode()
        case "multipart":
            body = _multipart(_flat(values))
        case "query":
            query = urlencode(_flat(values), quote_via=quote).encode()
        case "raw":
            body = draw(st.binary(max_size=60))
    if draw(st.integers(0, 3)) == 0:
        body = draw(damaged(body))
    cut = draw(st.integers(0, len(body)))
    method = draw(st.sampled_from(["POST", "POST", "POST", "GET", "HEAD", "PUT", "OPTIONS", "TRACE", "post", ""]))
    if path in GOOD and not GOOD[path] and draw(st.booleans()):
        method = "GET"
    return Call(method, path, query, draw(_headers(len(body))), [body[:cut], body[cut:]])


def _values(good: dict[str, Any]) -> SearchStrategy[Any]:
    """Return a strategy for bodies: good ones, those with odd texts in their fields, altered ones, and any JSON."""
    text = texts() | st.sampled_from(["A dog. " * 30, "<" * 300, "x" * 700, "\ud800", "\0", *FRAGMENTS])
    free = ("q", "text", "beginning")
    with_texts = st.fixed_dictionaries(
        {name: text if isinstance(value, str) and name in free else st.just(value) for name, value in good.items()}
    )  # fmt: skip
    return st.just(good) | with_texts | with_texts | altered(good) | altered(good) | json_values()


def _flat(values: Any) -> dict[str, str]:
    """Return the fields of a form."""
    if not isinstance(values, dict):
        return {"q": _encodable(values)}
    return {_encodable(name): _encodable(value) for name, value in values.items()}


def _encodable(value: Any) -> str:
    return str(value).encode(errors="replace").decode()


def _multipart(values: dict[str, str]) -> bytes:
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in values.items()
    ]
    return "".join([*parts, "--x--\r\n"]).encode()


def _headers(length: int) -> SearchStrategy[list[tuple[bytes, bytes]]]:
    lengths = [b"%d" % length, b"%d" % length, b"-1", b"1" * 30, b"x", b"999999", b""]
    keys = [KEY, b"Bearer " + KEY, b"bearer", b"Basic x", b"\xff" * 9, b""]
    one = st.tuples(st.just(b"content-length"), st.sampled_from(lengths)) | st.tuples(
        st.sampled_from([b"authorization", b"x-api-key", b"host", b"cookie", b"transfer-encoding"]),
        st.sampled_from(keys) | st.binary(max_size=9),
    )
    origin = st.tuples(st.just(b"origin"), st.sampled_from([ORIGIN, ORIGIN, b"null", b"\xff", b""]))
    return st.lists(one | origin, max_size=3)
