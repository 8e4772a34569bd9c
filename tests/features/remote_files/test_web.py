"""Addresses of a plain web server, which knows no parts, breaks off, or is busy."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from nmt.errors import UserError
from nmt.text.streams import open_output, read_input

pytest.importorskip("aiohttp", reason="needs the extra remote")
CONTENT = b"".join(b"line %d\n" % number for number in range(50_000))


class Server(BaseHTTPRequestHandler):
    faults: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.start(200, len(CONTENT))

    def do_GET(self) -> None:
        fault = self.faults.pop(0) if self.faults else ""
        if self.path != "/text.txt?download=1":
            self.start(404, 0)
        elif fault == "503":
            self.start(503, 0)
        else:
            self.start(200, len(CONTENT))
            self.wfile.write(CONTENT[: 100_000 if fault == "cut" else None])

    def start(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Last-Modified", "Wed, 25 Nov 2026 10:00:00 GMT")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("faults", [[], ["cut", "503", "cut"]])
def test_a_page_is_read(address: str, faults: list[str]) -> None:
    Server.faults[:] = faults
    assert "\n".join(read_input(f"{address}/text.txt?download=1")) + "\n" == CONTENT.decode()
    assert Server.faults == []


def test_a_missing_page_is_an_error_of_one_line(address: str) -> None:
    with pytest.raises(UserError, match="does not exist"):
        read_input(f"{address}/none.txt")


def test_pages_cannot_be_written(address: str) -> None:
    with (
        pytest.raises(UserError, match="addresses of this kind cannot store files"),
        open_output(f"{address}/out.txt") as file,
    ):
        file.write(b"x\n")
