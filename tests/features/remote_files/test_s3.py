"""Addresses of a server that speaks S3's protocol, behind a proxy that cuts, refuses, slows and shortens answers."""

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.features.remote_files import transfer
from nmt.features.remote_files.folder import FsspecFolder
from nmt.storage.mirror import Mirror
from nmt.text.streams import open_output, read_input
from tests.features.remote_files.test_folders import settings
from tests.integration.toy import refuse, succeed

pytestmark = pytest.mark.slow
CONTENT = b"".join(b"%d %s\n" % (number, b"word " * 20) for number in range(200_000))
"""About 20 MB: several requests, because each asks for 8 MB and what is read ahead."""


class FaultyProxy(BaseHTTPRequestHandler):
    """Passes requests on; the next GET and PUT requests meet the faults of the class, one each."""

    protocol_version = "HTTP/1.1"
    target: ClassVar[int]
    faults: ClassVar[list[str]] = []
    put_faults: ClassVar[list[str]] = []
    requests: ClassVar[list[str]] = []

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.faults.pop(0) if self.command == "GET" and "list-type" not in self.path and self.faults else ""
        if self.command == "PUT" and self.put_faults:
            fault = self.put_faults.pop(0)
        self.requests.append(f"{self.command} {self.headers.get('Range', '')} {fault}")
        if fault == "503":
            self.send_error(503, "Slow Down")
            return
        connection = HTTPConnection("127.0.0.1", self.target, timeout=30)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        if fault == "lost":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.answer(answer, fault)
        connection.close()

    def answer(self, answer: HTTPResponse, fault: str) -> None:
        body = b"" if self.command == "HEAD" else answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        sent = body[: len(body) // 3] if fault in ("cut", "short") else body
        claimed = len(sent) if fault == "short" else answer.getheader("Content-Length", str(len(body)))
        self.send_header("Content-Length", str(claimed))
        self.end_headers()
        parts = [sent] if fault != "slow" else [sent[start : start + 100_000] for start in range(0, len(sent), 100_000)]
        for part in parts:
            self.wfile.write(part)
            time.sleep(0.01 if fault == "slow" else 0)
        if fault == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on  # noqa: N815 - names of the base class

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    pytest.importorskip("s3fs", reason="needs the extra remote")
    server = pytest.importorskip("moto.server", reason="needs moto[server]")
    moto = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    _, FaultyProxy.target = moto.get_host_and_port()
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), FaultyProxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    before = dict(os.environ)
    endpoint = f"http://127.0.0.1:{proxy.server_port}"
    os.environ |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    os.environ |= {"AWS_DEFAULT_REGION": "us-east-1", "NO_PROXY": "127.0.0.1"}
    import s3fs

    system = s3fs.S3FileSystem()
    system.mkdir("corpora")
    system.pipe_file("corpora/big.txt", CONTENT)
    yield system
    proxy.shutdown()
    moto.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    for each in (FaultyProxy.faults, FaultyProxy.put_faults, FaultyProxy.requests):
        each.clear()
    yield
    for each in (FaultyProxy.faults, FaultyProxy.put_faults):
        each.clear()


def test_a_file_of_a_bucket_is_read(store: Any) -> None:
    assert "\n".join(read_input("s3://corpora/big.txt")) + "\n" == CONTENT.decode()


@pytest.mark.parametrize("fault", ["cut", "short", "503", "slow"])
def test_faults_do_not_change_what_is_read(store: Any, fault: str) -> None:
    FaultyProxy.faults.extend([fault] * 4)
    assert "\n".join(read_input("s3://corpora/big.txt")) + "\n" == CONTENT.decode()
    assert len(FaultyProxy.faults) < 4, "a fault must have happened"


def test_a_server_that_stays_broken_ends_in_one_line(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "WAITS", (0.0,))  # s3fs tries again, too
    FaultyProxy.faults.extend(["503"] * 1000)
    with pytest.raises(UserError, match=r"cannot fetch s3://corpora/big.txt .*: check the network and run the same"):
        read_input("s3://corpora/big.txt")
    FaultyProxy.faults.clear()
    assert "\n".join(read_input("s3://corpora/big.txt")) + "\n" == CONTENT.decode()


def test_a_missing_file_and_a_missing_bucket_are_errors_of_one_line(store: Any) -> None:
    for address in ("s3://corpora/none.txt", "s3://no-such-bucket/x.txt", "s3://no-such-bucket/*.txt"):
        with pytest.raises(UserError, match=f"input={re.escape(address)} does not exist"):
            read_input(address)


@pytest.mark.parametrize(
    ("status", "code", "complaint"),
    [(403, "AccessDenied", "access is refused"), (400, "ExpiredToken", "have your credentials expired")],
)
def test_refused_and_expired_credentials_are_errors_of_one_line(
    store: Any, monkeypatch: pytest.MonkeyPatch, status: int, code: str, complaint: str
) -> None:
    body = f"<Error><Code>{code}</Code><Message>The provided token has expired or is not allowed.</Message></Error>"

    def refuse(self: FaultyProxy) -> None:
        self.send_response(status)
        content = b"" if self.command == "HEAD" else body.encode()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    for method in ("do_HEAD", "do_GET", "do_PUT"):
        monkeypatch.setattr(FaultyProxy, method, refuse)
    with pytest.raises(UserError, match=complaint):
        FsspecFolder("s3://corpora/folder", "paths.data").read("index.json")
    with pytest.raises(UserError, match=complaint):
        read_input("s3://corpora/big.txt")
    with pytest.raises(UserError, match="access is refused"), open_output("s3://corpora/out.txt") as file:
        file.write(b"x\n")


def test_outputs_are_stored_whole_or_not_at_all(store: Any) -> None:
    large = np.random.default_rng(1).bytes(12_000_000)
    with open_output("s3://corpora/out/large.bin") as file:
        file.write(large)
    assert store.cat_file("corpora/out/large.bin") == large
    with pytest.raises(UserError, match="does not exist"), open_output("s3://no-such-bucket/out.txt") as file:
        file.write(b"x\n")


def test_of_several_processes_that_create_a_file_one_is_told_so(store: Any) -> None:
    folder, start, got = FsspecFolder("s3://corpora/created", "paths.data"), threading.Barrier(5), []

    def create(number: int) -> None:
        start.wait()
        got.append(folder.create("owner.lease", b"%d" % number))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 4 + [True]


@pytest.mark.parametrize("fault", ["503", "lost"])
def test_a_file_whose_answer_was_lost_has_been_created(store: Any, fault: str) -> None:
    folder = FsspecFolder(f"s3://corpora/{fault}", "paths.data")
    FaultyProxy.put_faults.extend([fault] * 2)
    assert folder.create("owner.lease", b"mine")
    assert FaultyProxy.put_faults == []
    assert not folder.create("owner.lease", b"other")


@pytest.mark.parametrize("fault", ["cut", "short", "503", "slow"])
def test_faults_do_not_change_a_copy_of_a_folder(store: Any, tmp_path: Path, fault: str) -> None:
    first, second = (Mirror(f"s3://corpora/run-{fault}", tmp_path / name, "paths.outputs") for name in "ab")
    first.folder.mkdir()
    (first.folder / "large").write_bytes(CONTENT)
    (first.folder / "small").write_bytes(b"1")
    FaultyProxy.put_faults.extend(["503", "lost"])
    first.push()
    assert FaultyProxy.put_faults == []
    FaultyProxy.faults.extend([fault] * 3)
    second.pull()
    assert FaultyProxy.faults == []
    assert [(second.folder / name).read_bytes() for name in ("large", "small")] == [CONTENT, b"1"]


def test_a_missing_bucket_is_an_error_before_text_is_prepared(store: Any, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("one\teins\n")
    said = refuse(["data", "data=files", f"data.train=[{tmp_path}/x.tsv]", "paths.data=s3://no-such-bucket/data"])
    assert "no-such-bucket" in said
    assert "does not exist" in said
    assert said.rstrip().endswith("check the address and the bucket")


def test_a_run_begins_from_a_model_in_a_bucket(store: Any, tmp_path: Path) -> None:
    words = [*settings.__wrapped__(tmp_path), f"paths.data={tmp_path}/data"]  # type: ignore[attr-defined]
    succeed(["data", *words])
    succeed(["train", *words, "training.steps=4", "paths.outputs=s3://corpora/runs"])
    FaultyProxy.faults.extend(["cut", "503"])
    begun = [*words, "name=tuned", "training.steps=4", "training.init_from=s3://corpora/runs/toy"]
    assert "beginning from" in succeed(["train", *begun, f"paths.outputs={tmp_path}/runs"])
    assert FaultyProxy.faults == []
    (tmp_path / "text").write_text("the old man sees a stone\n")
    words += [f"paths.outputs={tmp_path}/none", f"input={tmp_path}/text", f"output={tmp_path}/translated"]
    succeed(["translate", *words, "checkpoint=s3://corpora/runs/toy/checkpoints/last"])
    assert (tmp_path / "translated").read_text(encoding="utf-8").count("\n") == 1
