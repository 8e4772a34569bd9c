"""A small Hub on 127.0.0.1 with the paths that the real client requests, and with failures on demand."""

import hashlib
import io
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow
import pyarrow.parquet

DATASET = "wmt/wmt14"
REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"


def shard(languages: tuple[str, str], name: str, rows: int) -> bytes:
    """Return a Parquet file with the features of WMT14: {"translation": Translation(languages)}."""
    kind = pyarrow.struct([(language, pyarrow.string()) for language in languages])
    values = [{"translation": {language: f"{name} {row} {language}" for language in languages}} for row in range(rows)]
    features = {"translation": {"languages": list(languages), "_type": "Translation"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    sink = io.BytesIO()
    table = pyarrow.Table.from_pylist(values, pyarrow.schema([("translation", kind)], metadata=metadata))
    pyarrow.parquet.write_table(table, sink, compression="none")
    return sink.getvalue()


class SmallHub(ThreadingHTTPServer):
    """Serves `files` by their path in the repository; the other attributes cause failures."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.sends = Counter[str]()
        """How often each path was downloaded."""
        self.is_down = False
        """Whether connections are closed without an answer."""
        self.sent: dict[str, bytes] = {}
        """Content sent for a path instead of its own, with the length and checksum of its own."""


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[SmallHub]:
    """Serve files during the block."""
    with SmallHub(files) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        hub.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallHub

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        if self.server.is_down:
            self.close_connection = True
            return
        path = self.path.partition("?")[0]
        name = path.removeprefix(f"/datasets/{DATASET}/resolve/{REVISION}/")
        if path == f"/api/datasets/{DATASET}/revision/{REVISION}":
            siblings = [{"rfilename": name} for name in self.server.files]
            about = {"id": DATASET, "sha": REVISION, "private": False, "tags": [], "downloads": 0, "siblings": siblings}
            self._send(200, json.dumps(about).encode(), {"Content-Type": "application/json"})
        elif path == f"/api/datasets/{DATASET}/tree/{REVISION}":
            entries = [self._entry(name) for name in self.server.files]
            self._send(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})
        elif name in self.server.files:
            self._send_file(name)
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _entry(self, name: str) -> dict[str, object]:
        content = self.server.files[name]
        lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return {"type": "file", "path": name, "size": len(content), "oid": "0" * 40, "lfs": lfs}

    def _send_file(self, name: str) -> None:
        whole = self.server.files[name]
        sum_ = f'"{hashlib.sha256(whole).hexdigest()}"'
        headers = {"ETag": sum_, "X-Repo-Commit": REVISION, "X-Linked-Size": str(len(whole)), "X-Linked-Etag": sum_}
        self.server.sends[name] += self.command == "GET"
        self._send(200, self.server.sent.get(name, whole), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
