"""Text in a store of objects: a server on this machine that speaks S3's protocol, in a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.ports import free_port

BUCKET = "corpora"
SETTINGS = (
    "data=files",
    "data.corpus=generated",
    *(
        f"data.{name}=[s3://{BUCKET}/{split}-*.parquet]"
        for name, split in (("train", "train"), ("valid", "validation"), ("test", "test"))
    ),
)
"""What reads the text from the store."""
START_SECONDS = 60


@contextmanager
def storing(text: Path, folder: Path) -> Iterator[int]:
    """Move files of text into a store below a folder, and yield the process that serves it."""
    port, spool = free_port(), folder / "store"
    spool.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        env={**os.environ, "TMPDIR": str(spool)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(port)
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "NO_PROXY": "127.0.0.1"}
        os.environ["NMT_CACHE"] = str(folder / "cache")
        _move(text)
        yield server.pid
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("the server of the store does not start: install .[remote,remote-tests]")


def _move(text: Path) -> None:
    import s3fs  # noqa: PLC0415 - an extra

    start, size = time.perf_counter(), 0
    system = s3fs.S3FileSystem(skip_instance_cache=True)
    system.mkdir(BUCKET)
    for file in sorted(text.iterdir()):
        size += file.stat().st_size
        system.put_file(str(file), f"{BUCKET}/{file.name}")
        file.unlink()
    print(f"{size / 1e9:.2f} GB stored in {time.perf_counter() - start:.0f} s (not part of preparation)", flush=True)
