"""Check that a line of 1 GB is refused without more memory than a short line needs."""

import gzip
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet

from fuzz.prepared import tiny_run

SIZE = 1 << 30
PIECE = 1 << 20
ALLOWED = 256 << 20
"""Bytes by which the peak may exceed that of a short line."""
TOO_LONG = re.compile("line 1: longer than|bytes in 1 texts of row group 1")
WATCHER = """
import re, sys
from pathlib import Path
from nmt.cli import main
code = main(sys.argv[2:])
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""
"""Runs the command line, then prints its peak memory."""


class Use(NamedTuple):
    """The result of a command."""

    name: str
    code: int
    error: str
    peak: int
    """Bytes of memory."""


def main() -> int:
    """Print the peak memory of each command; return 1 if one failed."""
    with tempfile.TemporaryDirectory() as folder:
        uses = list(measure(Path(folder)))
    base = uses[0].peak
    for use in uses:
        print(f"{use.name:<22} exit code {use.code}  peak {use.peak >> 20:,} MiB  {use.error}", flush=True)
    return int(
        any(use.code != 2 or TOO_LONG.search(use.error) is None or use.peak > base + ALLOWED for use in uses[1:])
    )


def measure(folder: Path) -> Iterator[Use]:
    """Run `translate` on a short and a long line, and `data` on the long one: as text, compressed, and in Parquet."""
    config = tiny_run(folder)
    overrides = [f"paths.data={folder}", f"paths.outputs={config.paths.outputs}", "runtime.device=cpu"]
    run = ["translate", "name=tiny", "checkpoint=last", *overrides]
    yield _run("translate, short", run, b"the cat\n", 1)
    yield _run("translate", run, b"x" * PIECE, SIZE // PIECE)
    for name, ending in (("data", ""), ("data, compressed", ".gz"), ("data, Parquet", ".parquet")):
        source, target = (folder / f"long.{language}{ending}" for language in ("en", "de"))
        _write(source)
        target.hardlink_to(source)
        paths = source if ending == ".parquet" else f"{source},{target}"
        files = [f"data.{split}=[{paths}]" for split in ("train", "valid", "test")]
        yield _run(name, ["data", "data.source=files", "data.corpus=long", *files, *overrides], b"", 0)
        source.unlink()
        target.unlink()


def _write(path: Path) -> None:
    """Write a file of one long line or text; uncompressed text is a sparse file."""
    if path.suffix == ".parquet":
        text = pyarrow.array(["x" * SIZE])
        pairs = pyarrow.StructArray.from_arrays([text, text], ["en", "de"])
        pyarrow.parquet.write_table(pyarrow.table({"translation": pairs}), path, compression="zstd")
    elif path.suffix == ".gz":
        with gzip.open(path, "wb", compresslevel=1) as file:
            for _ in range(SIZE // PIECE):
                file.write(b"x" * PIECE)
    else:
        path.touch()
        os.truncate(path, SIZE)


def _run(name: str, words: list[str], piece: bytes, times: int) -> Use:
    """Run `nmt` with a text, repeated `times` times, on its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHER, "nmt", *words], env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    with suppress(BrokenPipeError):
        for _ in range(times):
            process.stdin.write(piece)
    _, errors = process.communicate()
    *lines, peak = errors.decode().splitlines()
    return Use(name, process.returncode, " | ".join(lines), int(peak) << 10)
