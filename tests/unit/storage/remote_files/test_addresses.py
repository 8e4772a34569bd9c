"""Addresses as inputs and outputs, with the file systems that fsspec has in memory and for local files."""

import gzip
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.cli import main
from nmt.config.data import DataConfig
from nmt.config.folders import expanded, local_folder
from nmt.data.sources import registry
from nmt.data.sources.files import inputs, read_pairs
from nmt.errors import UserError
from nmt.storage import remote
from nmt.text.lines import open_output, read_input
from tests.integration.toy import pairs


def new_process() -> None:
    """Forget what was fetched, as a new process does."""
    remote._copies.cache_clear()


def test_training_files_at_addresses_are_read_in_their_formats(memory: Any) -> None:
    memory.pipe_file("/corpus/a.en.gz", gzip.compress(b"one\ntwo\n"))
    memory.pipe_file("/corpus/a.de", b"eins\nzwei\n")
    files = inputs(["memory://corpus/a.en.gz", "memory://corpus/a.de"], "train")
    assert list(read_pairs(files, ("en", "de"))) == [("one", "eins"), ("two", "zwei")]


def test_wildcards_stand_for_all_files_in_the_order_of_their_names(memory: Any) -> None:
    for number in (10, 2, 1):
        memory.pipe_file(f"/corpus/part-{number:02}.tsv", f"{number}\tx\n".encode())
    files = inputs(["memory://corpus/part-*.tsv"], "train")
    assert list(read_pairs(files, ("en", "de"))) == [("1", "x"), ("2", "x"), ("10", "x")]
    with pytest.raises(UserError, match=r"input=memory://corpus/part-\* matches 3 files: name one"):
        read_input("memory://corpus/part-*")


def test_input_and_output_may_be_at_addresses(memory: Any, tmp_path: Path) -> None:
    memory.pipe_file("/in.txt", b"one\ntwo\n")
    with open_output("memory://out.txt") as file:
        file.writelines(f"{line}!\n".encode() for line in read_input("memory://in.txt"))
    assert memory.cat_file("/out.txt") == b"one!\ntwo!\n"
    (tmp_path / "in.txt").write_text("one\n")
    with open_output(f"file://{tmp_path}/out.txt") as file:
        file.writelines(f"{line}?\n".encode() for line in read_input(f"file://{tmp_path}/in.txt"))
    assert (tmp_path / "out.txt").read_bytes() == b"one?\n"


def test_a_failed_block_writes_nothing_to_an_address(memory: Any) -> None:
    with pytest.raises(TypeError), open_output("memory://out.txt") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert not memory.exists("/out.txt")


def test_a_copy_is_used_again_until_the_file_changes(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/x.txt", b"first\n")
    assert list(read_input("memory://x.txt")) == ["first"]
    opened: list[str] = []
    original = type(memory)._open

    def remembering(self: object, path: str, *rest: object, **more: object) -> object:
        opened.append(path)
        return original(self, path, *rest, **more)

    monkeypatch.setattr(type(memory), "_open", remembering)
    new_process()
    assert list(read_input("memory://x.txt")) == ["first"]
    assert opened == []
    memory.pipe_file("/x.txt", b"second\n")
    opened.clear()
    assert list(read_input("memory://x.txt")) == ["first"], "a process must see one version"
    new_process()
    assert list(read_input("memory://x.txt")) == ["second"]
    assert opened == ["/x.txt"]


def test_files_of_web_servers_are_read_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="needs the extra remote")

    class Server(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            if ".gz" in self.path:
                self.send_header("Content-Encoding", "gzip")
            super().end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    (tmp_path / "x.en.gz").write_bytes(gzip.compress(b"one\n"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{server.server_port}"
        assert list(read_input(f"{there}/x.en.gz?download=1")) == ["one"]
        with pytest.raises(UserError, match=f"input={there}/none.txt does not exist"):
            read_input(f"{there}/none.txt")
        with pytest.raises(UserError, match="files on web servers are only read"), open_output(f"{there}/out.txt"):
            pass
        server.shutdown()
    with pytest.raises(UserError, match="Cannot connect"):
        read_input(f"{there}/other.txt")


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("memory://no/such.en", "data.train=memory://no/such.en does not exist"),
        ("memory://no/*.en", r"does not exist \(no file matches\)"),
        ("memory://folder", r"is a folder: name files, for example memory://folder/\*"),
        ("s4://bucket/x", "s4:// is not known; did you mean s3"),
        ("file:///no/such/file", "/no/such/file does not exist or is not a file: check data.train"),
    ],
)
def test_bad_addresses_are_errors_of_one_line(memory: Any, address: str, complaint: str) -> None:
    memory.pipe_file("/folder/x.en", b"x")
    with pytest.raises(UserError, match=complaint) as error:
        inputs([address], "train")
    assert "\n" not in str(error.value)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UserError, match=r"needs the package gcsfs: .*pip install 'gcsfs>="):
        read_input("gs://bucket/x")


@pytest.mark.parametrize(
    "name", ["memory://", Path("memory://"), "memory://x/y", "memory:/x", "s3:/", Path("s3://bucket/runs")]
)
def test_an_address_is_never_a_folder(name: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is an address"):
        expanded(name)
    with pytest.raises(UserError, match="is an address"):
        nmt.load(name)
    for setting in ("checkpoint", "training.init_from"):
        assert main(["train" if "." in setting else "translate", "input=/dev/null", f"{setting}={name}"]) == 2
    assert not [each for each in tmp_path.iterdir() if ":" in each.name]


def test_folders_of_different_addresses_are_different() -> None:
    names = ["s3://a/b", "s3://a-b", "gs://a/b", "s3://a/b/c", "s3://A/b"]
    assert len({local_folder(name) for name in names}) == len(names)
    assert local_folder("s3://a/b/") == local_folder("s3://a/b")
    assert local_folder("outputs/x") == Path("outputs/x")


def test_the_fingerprint_of_a_file_at_an_address_is_not_asked_for_outside_of_preparation(memory: Any) -> None:
    memory.pipe_file("/x.tsv", b"one\teins\n")
    config = DataConfig(source="files", train=["memory://x.tsv"])
    assert registry.fingerprint(config, "train")["files"]
    assert registry.fingerprint_if_here(config, "train") is None


@pytest.mark.slow
def test_text_at_addresses_is_prepared_like_local_text_and_training_does_not_fetch_it(
    memory: Any, tmp_path: Path
) -> None:
    found = pairs(60, 1)
    for side, language in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in found)
        memory.pipe_file(f"/toy.{language}", text.encode())
        (tmp_path / f"toy.{language}").write_text(text)
    settings = ["data.source=files", "data.hold_out=0.1", "data.valid=[]", "data.test=[]", "tokenizer.vocab_size=60"]
    manifests: list[dict[str, bytes]] = []
    for place in ("memory://toy", str(tmp_path / "toy")):
        chosen = [*settings, f"data.train=[{place}.en,{place}.de]", f"paths.data={tmp_path / str(len(manifests))}"]
        assert main(["data", *chosen]) == 0
        (folder,) = (tmp_path / str(len(manifests))).iterdir()
        manifests.append({file.name: file.read_bytes() for file in folder.iterdir() if file.name != "manifest.json"})
    assert manifests[0] == manifests[1]
    memory.rm_file("/toy.en")
    new_process()
    chosen = [*settings, "data.train=[memory://toy.en,memory://toy.de]", f"paths.data={tmp_path / '0'}"]
    assert main(["batch", *chosen, "training.batch_tokens=300"]) == 0
    other = ["data.train=[memory://other.en,memory://toy.de]", f"paths.data={tmp_path / '0'}"]
    assert main(["batch", *settings, *other, "training.batch_tokens=300"]) == 2
