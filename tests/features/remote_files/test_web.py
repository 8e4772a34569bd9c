"""Addresses of web servers, which know no parts, compress, break off, are busy, or refuse."""

import gzip
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nmt.errors import UserError
from nmt.features.remote_files import addresses
from nmt.features.remote_files.addresses import FsspecAddresses
from nmt.storage.addresses import local_file
from nmt.text.streams import open_output, read_input

pytest.importorskip("aiohttp", reason="needs the extra remote")
CONTENT = b"".join(b"line %d\n" % number for number in range(50_000))
LARGE = 18 << 20
"""More bytes than are requested together."""


@dataclass
class Behaviour:
    """What the server has, and how it answers."""

    content: bytes = CONTENT
    faults: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=lambda: {"Last-Modified": "Wed, 25 Nov 2026 10:00:00 GMT"})
    knows_parts: bool = False
    knows_length: bool = True
    knows_length_of_head: bool = True
    compresses: bool = False
    refuses: dict[str, int] = field(default_factory=dict)
    """Statuses of all answers to a method."""
    sent: int = 0
    """Bytes of all bodies."""


class Server(BaseHTTPRequestHandler):
    behaviour = Behaviour()

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        now = self.behaviour
        fault = now.faults.pop(0) if now.faults and with_body else ""
        status = now.refuses.get(self.command, 503 if fault == "503" else 200)
        if self.path.startswith("/moved/"):
            self.start(302, {"Location": self.path.removeprefix("/moved")})
            return
        if not self.path.startswith("/text.txt") or status != 200:
            self.start(404 if status == 200 else status, {"Content-Length": "0"})
            return
        body, headers = now.content, dict(now.headers)
        if now.compresses and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        elif now.knows_parts and (wanted := self.headers.get("Range")):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1, len(body)) if last else len(body)
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(body)}"
            body, status = body[int(first) : end], 206
        if now.knows_length:
            headers["Content-Length"] = str(len(body) if with_body or now.knows_length_of_head else 0)
        self.start(status, headers)
        if with_body:
            part = body[: len(body) // 2] if fault == "cut" else body
            self.wfile.write(part)
            now.sent += len(part)

    def start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(autouse=True)
def server() -> Behaviour:
    Server.behaviour = Behaviour()
    return Server.behaviour


def fetched(address: str, name: str = "text.txt") -> bytes:
    return local_file(f"{address}/{name}", "data.train").read_bytes()


@pytest.mark.parametrize("faults", [[], ["cut", "503", "cut"]])
def test_a_page_is_read(address: str, server: Behaviour, faults: list[str]) -> None:
    server.faults = list(faults)
    assert "\n".join(read_input(f"{address}/text.txt?download=1")) + "\n" == CONTENT.decode()
    assert server.faults == []


@pytest.mark.parametrize("knows_parts", [True, False])
def test_a_large_file_is_fetched_once_from_any_server(address: str, server: Behaviour, knows_parts: bool) -> None:
    server.content, server.knows_parts = os.urandom(LARGE), knows_parts
    assert fetched(address) == server.content
    assert server.sent == LARGE


def test_only_the_rest_is_fetched_after_a_cut_from_a_server_that_knows_parts(address: str, server: Behaviour) -> None:
    server.content, server.knows_parts, server.faults = os.urandom(LARGE), True, ["cut", "cut"]
    assert fetched(address) == server.content
    assert server.sent < 1.5 * LARGE, "what was still in the buffers when the connection broke is fetched again"


def test_a_server_that_compresses_its_answers_sends_the_file_itself(address: str, server: Behaviour) -> None:
    server.content, server.compresses = bytes(LARGE), True
    assert fetched(address) == server.content


@pytest.mark.parametrize("knows_length", [True, False])
@pytest.mark.parametrize("name", ["text.txt.gz", "text.txt%2Egz"])
def test_a_compressed_file_stays_compressed(address: str, server: Behaviour, name: str, knows_length: bool) -> None:
    server.content, server.knows_length = gzip.compress(CONTENT), knows_length
    server.headers["Content-Encoding"] = "gzip"
    assert "\n".join(read_input(f"{address}/{name}")) + "\n" == CONTENT.decode()


def test_an_answer_that_is_compressed_without_being_asked_is_decompressed(address: str, server: Behaviour) -> None:
    server.content = gzip.compress(CONTENT)
    server.headers["Content-Encoding"] = "gzip"
    assert fetched(address) == CONTENT


@pytest.mark.parametrize("content", [CONTENT, b""])
def test_a_server_that_calls_all_files_empty_in_advance_is_read(
    address: str, server: Behaviour, content: bytes
) -> None:
    server.content, server.knows_length_of_head = content, False
    assert fetched(address) == content


def test_redirections_are_followed(address: str) -> None:
    assert fetched(address, "moved/text.txt") == CONTENT


def test_a_server_that_answers_no_head_is_read(address: str, server: Behaviour) -> None:
    server.refuses = {"HEAD": 403}
    assert fetched(address) == CONTENT


@pytest.mark.parametrize("headers", [{}, {"ETag": '"1"'}])
def test_a_changed_file_of_the_same_size_is_fetched_again(
    address: str, server: Behaviour, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.headers = dict(headers)
    assert fetched(address) == CONTENT
    server.content = CONTENT.upper()
    server.headers = dict.fromkeys(headers, '"2"')
    monkeypatch.setattr(addresses, "ADDRESSES", FsspecAddresses())  # as another process
    assert fetched(address) == CONTENT.upper()


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        (401, "there are no valid credentials"),
        (403, "access is refused"),
        (404, "does not exist"),
        (418, "the server refuses the request"),
    ],
)
def test_a_refusal_is_an_error_of_one_line(address: str, server: Behaviour, status: int, complaint: str) -> None:
    server.refuses = {"HEAD": status, "GET": status}
    with pytest.raises(UserError, match=complaint) as caught:
        read_input(f"{address}/text.txt")
    assert "\n" not in str(caught.value)


def test_a_broken_server_is_asked_again(address: str, server: Behaviour, capsys: pytest.CaptureFixture[str]) -> None:
    server.refuses = {"HEAD": 500, "GET": 500}
    with pytest.raises(UserError, match=r"cannot fetch .*Internal Server Error.*check the network"):
        read_input(f"{address}/text.txt")
    assert "trying again" in capsys.readouterr().err


def test_a_host_that_does_not_answer_is_no_missing_file() -> None:
    with pytest.raises(UserError, match=r"cannot fetch .*Cannot connect"):
        read_input("http://127.0.0.1:1/text.txt")


@pytest.mark.parametrize("bad", ["http://", "http://127.0.0.1:99999/text.txt"])
def test_an_impossible_address_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match=r"cannot be used .*check the address"):
        read_input(bad)


def test_a_missing_page_is_an_error_of_one_line(address: str) -> None:
    with pytest.raises(UserError, match="does not exist"):
        read_input(f"{address}/none.txt")


def test_pages_cannot_be_written(address: str) -> None:
    with (
        pytest.raises(UserError, match="addresses of this kind cannot store files"),
        open_output(f"{address}/out.txt") as file,
    ):
        file.write(b"x\n")
