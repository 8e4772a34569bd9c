"""Texts that cost much to read, sent by a real client to the server's own protocol."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from nmt.config.commands import ServeConfig
from nmt.decoding.loaded_model import LoadedModel
from nmt.serving import fields, splitting
from nmt.serving.sentences import sentences
from tests.serving.harness import CONFIG, Client, ThreadRunner, running
from tests.serving.test_protocol import exchange

LANGUAGES = b"source=en&target=de&q="


@pytest.fixture
def client(model: LoadedModel) -> Iterator[Client]:
    """Return the client of a server that reads as much as by default, but accepts few sentences."""
    limits = replace(CONFIG, max_bytes=ServeConfig().max_bytes)
    with running(Client({"tiny": ThreadRunner(model)}, limits)) as found:
        yield found


def post(client: Client, content: bytes) -> tuple[int, bytes]:
    """Send a form on a connection of its own; return the status and the body of the answer."""
    kind = "application/x-www-form-urlencoded"
    head = f"POST /translate HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    answer = client.run(exchange(client.app, f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content))
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]


def test_a_form_of_many_fields_is_refused_before_it_is_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    unescaped: list[str] = []

    def unquote(text: str, **_: str) -> str:
        unescaped.append(text)
        return text

    monkeypatch.setattr("urllib.parse.unquote", unquote)
    for content in (b"&" * 190_000, b"a&" * 95_000, b"%41=%41&" * 20_000):
        status, answer = post(client, content)
        assert (status, b"at most 50 fields" in answer) == (400, True)
    assert unescaped == []


def test_fields_of_a_form_are_read_as_browsers_and_curl_write_them() -> None:
    form = "a=1+2%26&b&c=%C3%A9&a=Müller".encode()
    assert fields._parse_form(form) == {"a": "Müller", "b": "", "c": "\u00e9"}


@pytest.mark.parametrize("text", [b"M\xfcller", b"M%FCller"])
def test_a_form_in_another_encoding_is_refused(client: Client, text: bytes) -> None:
    assert post(client, LANGUAGES + text) == (400, b'{"error":"the form is not UTF-8"}')


@pytest.fixture
def sentences_found(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the sentences that are looked for, which is done in a thread."""
    found: list[Any] = []

    def counted(text: str) -> Iterator[Any]:
        assert threading.current_thread() is not client.thread
        for span in sentences(text):
            found.append(span)
            yield span

    monkeypatch.setattr(splitting, "sentences", counted)
    return found


@pytest.mark.parametrize("markup", ["<p>a" * 45_000, "a\n" * 90_000, "a. B. " * 30_000, "<" * 180_000])
def test_no_more_sentences_are_looked_for_than_a_request_may_have(
    client: Client, sentences_found: list[Any], markup: str
) -> None:
    status, _ = post(client, LANGUAGES + markup.encode() + b"&format=html")
    assert status == 400  # LibreTranslate's code for too much text
    assert len(sentences_found) == CONFIG.max_sentences + 1


@pytest.mark.parametrize("markup", ["<a " * 60_000, "<a " + "x" * 180_000, '<a ="' * 36_000, "<!--" * 45_000])
def test_markup_that_is_left_open_is_kept_and_not_translated(
    client: Client, sentences_found: list[Any], markup: str
) -> None:
    status, answer = post(client, LANGUAGES + markup.encode() + b"&format=html")
    assert (status, json.loads(answer)) == (200, {"translatedText": markup})
    assert sentences_found == []
