"""A small Hub on 127.0.0.1 with the paths that the real client requests, and with failures on demand."""

import hashlib
import io
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow
import pyarrow.parquet

DATASET = "wmt/wmt14"
REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"


def shard(languages: tuple[str, str], name: str, rows: int) -> bytes:
    """Return a Parquet file with the features of WMT14: {"translation": Translation(languages)}."""
    kind = pyarrow.struct([(language, pyarrow.string()) for language in languages])
    values = [{language: f"{name} {row} {language}" for language in languages} for row in range(rows)]
    features = {"translation": {"languages": list(languages), "_type": "Translation"}}
    schema = pyarrow.schema(
        [("translation", kind)], metadata={"huggingface": json.dumps({"info": {"features": features}})}
    )
    sink = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([{"translation": value} for value in values], schema), sink, compression="none"
    )
    return sink.getvalue()


class SmallHub(ThreadingHTTPServer):
    """Serves `files` by their path in the repository; the other attributes cause failures."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.sums = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        self.log: list[tuple[str, str, str]] = []
        """Method, path and range of each request."""
        self.answers: list[int] = []
        """Status codes to answer the next requests with."""
        self.refused: Counter[str] = Counter()
        """Number of further downloads of a path to answer with 503."""
        self.cut_after: dict[str, int] = {}
        """Bytes after which the next download of a path is interrupted."""
        self.sent: dict[str, bytes] = {}
        """Content sent for a path instead of its own, with the length and checksum of its own."""

    @property
    def url(self) -> str:
        """The value for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def downloads(self, path: str) -> list[str]:
        """Return the ranges in which a path was downloaded."""
        return [span for method, asked, span in self.log if method == "GET" and asked.endswith(path)]


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[SmallHub]:
    """Serve files during the block."""
    hub = SmallHub(files)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallHub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.log.append((self.command, path, self.headers.get("Range", "")))
        api = f"/api/datasets/{DATASET}"
        files = f"/datasets/{DATASET}/resolve/{REVISION}/"
        if self.server.answers:
            self._send(self.server.answers.pop(0), b"busy")
        elif path in (api, f"{api}/revision/{REVISION}"):
            self._send_json(self._info(with_blobs="blobs" in query))
        elif path == f"{api}/tree/{REVISION}":
            self._send_json([self._entry(name) for name in self.server.files])
        elif path.startswith(files) and path.removeprefix(files) in self.server.files:
            self._send_file(path.removeprefix(files))
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _info(self, *, with_blobs: bool) -> dict[str, Any]:
        siblings = [
            {"rfilename": name, **({"size": len(content), **self._blob(name)} if with_blobs else {})}
            for name, content in self.server.files.items()
        ]
        return {"id": DATASET, "sha": REVISION, "private": False, "tags": [], "downloads": 0, "siblings": siblings}

    def _blob(self, name: str) -> dict[str, Any]:
        size = len(self.server.files[name])
        return {"blobId": "0" * 40, "lfs": {"sha256": self.server.sums[name], "size": size, "pointerSize": 130}}

    def _entry(self, name: str) -> dict[str, Any]:
        size = len(self.server.files[name])
        lfs = {"oid": self.server.sums[name], "size": size, "pointerSize": 130}
        return {"type": "file", "path": name, "size": size, "oid": "0" * 40, "lfs": lfs}

    def _send_file(self, name: str) -> None:
        if self.command == "GET" and self.server.refused[name]:
            self.server.refused[name] -= 1
            self._send(503, b"unavailable")
            return
        content = self.server.sent.get(name, self.server.files[name])
        size = len(self.server.files[name])
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        headers = {
            "ETag": f'"{self.server.sums[name]}"',
            "X-Repo-Commit": REVISION,
            "X-Linked-Size": str(size),
            "X-Linked-Etag": f'"{self.server.sums[name]}"',
            "Accept-Ranges": "bytes",
            "Content-Length": str(len(content) - start),
        }
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(206 if start else 200, content[start:], headers, self.server.cut_after)

    def _send_json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, cuts: dict[str, int] | None = None
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = next((cuts.pop(name) for name in list(cuts or ()) if self.path.endswith(name)), None) if cuts else None
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True
