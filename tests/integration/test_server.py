"""`nmt serve` as a process: real clients, crashes, slow and vanishing clients, keys, and its end."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")

import nmt
from load_test import __main__ as load_test
from load_test.attacks import attacking, attacks
from nmt.cli import main
from shared.processes import is_alive
from shared.processes import model_processes as processes_of_models
from tests.integration.toy import environment
from tests.quick_processes import Running, wait_for
from tests.unit.small_models import LINES
from tests.unit.tiny_run import write_tiny_run

SETTINGS = ("runtime.device=cpu", "runtime.precision=fp32", "runtime.threads=1", "serve.port=0")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the process of the model in /proc")


class Server(NamedTuple):
    process: subprocess.Popen[str]
    url: str

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)


def start(folder: Path, *settings: str) -> Server:
    command = [sys.executable, "-m", "nmt", "serve", f"serve.models=[tiny:{folder}]", *SETTINGS, *settings]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd=folder.parent
    )
    assert process.stdout
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, process.communicate()[1]
    return Server(process, found[0])


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_run(tmp_path_factory.mktemp("outputs") / "tiny")


@pytest.fixture(scope="module")
def export(run_folder: Path) -> Path | None:
    """Return an export of the run for CTranslate2 if that is installed."""
    if not find_spec("ctranslate2"):
        return None
    folder, text = run_folder.parent / "export", run_folder.parent / "text"
    text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    words = [f"name={run_folder.name}", f"paths.outputs={run_folder.parent}", f"input={text}"]
    assert main(["export", *words, f"export.folder={folder}"]) == 0
    return folder


@pytest.fixture(scope="module")
def server(run_folder: Path, export: Path | None) -> Iterator[Server]:
    both = f"serve.models=[tiny:{run_folder},exported:{export}]"
    started = start(run_folder, *([both] if export else []))
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture(scope="module")
def expected(run_folder: Path) -> list[str]:
    model = nmt.load(run_folder, device="cpu", precision="fp32", threads=1)
    return [each.text for each in model.translate(LINES)]


def post(server: Server, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def translate(server: Server, text: str) -> str:
    status, answer = post(server, "/v1/translate", {"text": text})
    assert status == 200, answer
    translated: str = answer["translations"][0]["text"]
    return translated


def figure(server: Server, name: str) -> float:
    """Return one of the server's figures for Prometheus; 0 if it has none yet."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as response:
        found = re.search(rf"^{name}\{{.*\}} (\S+)$", response.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def model_processes(server: Server) -> set[int]:
    """Return the ids of the child processes that run the model."""
    return set(processes_of_models(server.process.pid))


@pytest.fixture(scope="module")
def slow_clients(server: Server) -> list[socket.socket]:
    """Open connections that say nothing, or only the beginning of a request; the server closes each after seconds."""
    slow = [socket.create_connection(server.address) for _ in range(5)]
    for each in slow[:3]:
        each.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
    slow[3].sendall(b"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
    return slow


@pytest.mark.usefixtures("slow_clients")
def test_many_clients_at_the_same_time_get_the_translations_of_the_model(server: Server, expected: list[str]) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda line: translate(server, line), LINES * 8))
    assert found == expected * 8


def test_requests_may_come_in_pieces_together_or_after_the_server_agrees(server: Server) -> None:
    body = json.dumps({"text": LINES[0]}).encode()
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body)
    first, second = head + b"\r\n" + body, b"GET /health HTTP/1.1\nHost: localhost\n\n"
    form = b"q=" + LINES[0].replace(" ", "+").encode() + b"&source=en&target=de"
    form_head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(form)
    form_head += b"Content-Type: application/x-www-form-urlencoded\r\n"
    for sent, agreed, answers in (
        ([head, b"\r\n" + body[:9], body[9:]], 0, 1),
        ([first + second + first[:30], first[30:]], 0, 3),
        ([first + first[:-9], first[-9:]], 0, 2),
        ([head + b"Expect: 100-continue\r\n\r\n", body], 1, 1),
        ([form_head + b"Expect: 100-continue\r\n\r\n", form[:9], form[9:]], 1, 1),
    ):
        with socket.create_connection(server.address, timeout=30) as connection:
            for each in sent:
                connection.sendall(each)
                time.sleep(0.1)
            received, part = b"", b"a part"
            while part and (received.count(b"HTTP/1.1 ") < agreed + answers or not received.endswith(b"}")):
                received += (part := connection.recv(65_536))
        assert [received.count(b"HTTP/1.1 %d" % status) for status in (100, 200)] == [agreed, answers]


def test_libretranslatepy_works_unchanged(server: Server, expected: list[str]) -> None:
    api = pytest.importorskip("libretranslatepy", reason="needs the extra dev").LibreTranslateAPI(server.url)
    assert [api.translate(line, "en", "de", timeout=60) for line in LINES] == expected
    assert [each["code"] for each in api.languages(timeout=60)] == ["en", "de"]
    assert api.detect(LINES[0], timeout=60)[0]["language"] == "en"


def test_deep_translator_works_unchanged(server: Server, expected: list[str]) -> None:
    deep_translator = pytest.importorskip("deep_translator", reason="needs the extra dev")
    client = deep_translator.LibreTranslator(
        source="en", target="de", custom_url=f"{server.url}/", api_key="any", use_free_api=False
    )
    assert client.translate_batch(LINES) == expected


@pytest.mark.skipif(not find_spec("ctranslate2"), reason="needs the extra ctranslate2")
def test_an_export_answers_as_it_does_without_a_server_and_says_what_it_lacks(server: Server, export: Path) -> None:
    model = nmt.load(export, device="cpu", threads=1)
    for line in LINES:  # one at a time, because CTranslate2 has one limit of length for all sentences of a batch
        asked = {"text": line, "nbest": 3, "model": "exported", "details": True}
        status, answer = post(server, "/v1/translate", asked)
        assert status == 200, answer
        candidates = answer["translations"][0]["sentences"][0]["candidates"]
        expected = model.translate([line], nbest=3)[0].candidates
        assert [each["text"] for each in candidates] == [each.text for each in expected]
        assert [each["score"] for each in candidates] == pytest.approx([each.score for each in expected])
        assert "attention" not in candidates[0]
        assert [word["text"] for word in candidates[0]["words"]] == candidates[0]["text"].split()
    status, answer = post(server, "/v1/choices", {"text": LINES[0], "model": "exported"})
    assert (status, answer) == (400, {"error": "model exported cannot name its next words with engine=ctranslate2"})


def test_vanishing_and_junk_clients_disturb_nobody(server: Server, expected: list[str]) -> None:
    for junk in (
        b"\x16\x03\x01" + os.urandom(200),
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 40_000 + b"\r\n\r\n",
        b"\r\n" * 99,
    ):
        with socket.create_connection(server.address) as connection, suppress(OSError):
            connection.sendall(junk)
    body = json.dumps({"text": LINES[0]}).encode()
    for _ in range(5):
        with socket.create_connection(server.address) as connection:
            head = f"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)  # and is gone
    assert translate(server, LINES[0]) == expected[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", attacks("en", "de"))
def test_honest_clients_get_their_answers_beside_hostile_ones(server: Server, kind: str) -> None:
    with attacking(server.address[1], "en", "de", kind):
        found = asyncio.run(load_test.measure(server.address[1], LINES * 4, 1.0, 4, {}))
    assert found.errors == 0
    assert found.latencies


@pytest.mark.slow
def test_model_processes_that_are_killed_are_replaced(server: Server, expected: list[str]) -> None:
    before = model_processes(server)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert post(server, "/v1/translate", {"text": LINES[0]})[0] in (500, 503)
    wait_for(lambda: post(server, "/v1/translate", {"text": LINES[0]})[0] == 200, seconds=120)
    assert translate(server, LINES[0]) == expected[0]
    assert not model_processes(server) & before


@pytest.mark.slow
def test_killed_server_takes_its_models_along_and_frees_its_port(run_folder: Path, expected: list[str]) -> None:
    started = start(run_folder)
    models = model_processes(started)
    with ThreadPoolExecutor(1) as pool:
        for each in models:
            os.kill(each, signal.SIGSTOP)  # as if in the middle of a batch: they do not notice a closed connection
        open_request = pool.submit(post, started, "/v1/translate", {"text": LINES[0]})
        wait_for(lambda: figure(started, "nmt_sentences_total") == 1)
        started.process.kill()
        with pytest.raises(OSError):  # noqa: PT011 - of one of several kinds
            open_request.result()
    wait_for(lambda: not any(map(is_alive, models)))
    again = start(run_folder, f"serve.port={started.address[1]}")
    try:
        assert translate(again, LINES[0]) == expected[0]
    finally:
        for server in (started, again):
            server.process.kill()
            server.process.communicate()


@pytest.mark.slow
def test_connections_of_slow_clients_are_closed(slow_clients: list[socket.socket]) -> None:
    for each in slow_clients:
        each.settimeout(20)
        received = b"".join(iter(lambda each=each: each.recv(4096), b""))  # type: ignore[misc]  # until it is closed
        assert received == b""


def test_sigterm_finishes_open_requests_and_exits_with_0(server: Server, expected: list[str]) -> None:
    long_text = "\n".join(LINES * 40)
    models, before = model_processes(server), figure(server, "nmt_sentences_total")
    with ThreadPoolExecutor(2) as pool:
        for each in models:
            os.kill(each, signal.SIGSTOP)
        open_request = pool.submit(translate, server, long_text)
        wait_for(lambda: figure(server, "nmt_sentences_total") > before)
        server.process.send_signal(signal.SIGTERM)
        for each in models:
            os.kill(each, signal.SIGCONT)
        assert open_request.result() == "\n".join(expected * 40)
    output, errors = server.process.communicate(timeout=60)
    assert server.process.returncode == 0
    assert output == ""
    assert "Traceback" not in errors
    assert not [line for line in LINES if line in errors]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(server.address)


def exit_codes_other_than_2(commands: list[list[str]]) -> int:
    return sum(main(each) != 2 for each in commands)


def test_what_cannot_be_served_is_refused_in_one_line(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("short\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = {
            f"serve.port={taken.getsockname()[1]}": "cannot listen on serve.host=127.0.0.1",
            f"serve.key_file={tmp_path / 'keys'}": "must have a key on each line",
            f"serve.models=[a:{tmp_path / 'nothing'}]": "there is no folder",
        }
        serve = ["serve", f"serve.models=[tiny:{run_folder}]", *SETTINGS]
        done = Running(exit_codes_other_than_2, [[*serve, setting] for setting in refused]).wait()
    assert done.returncode == 0
    for line, words in zip(done.stderr.splitlines(), refused.values(), strict=True):
        assert words in line
