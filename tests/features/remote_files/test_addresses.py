"""Addresses as inputs and outputs, with the file systems that fsspec has in memory and for local files."""

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.config.schema import DataConfig
from nmt.data.sources import registry
from nmt.data.sources.files import inputs, read_pairs
from nmt.errors import UserError
from nmt.features.remote_files import addresses
from nmt.features.remote_files.addresses import FsspecAddresses
from nmt.features.remote_files.cache import LIMIT
from nmt.text.streams import open_output, read_input
from tests.integration.toy import pairs


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what was fetched and release the locks, as a new process would find it."""
    if cache := addresses.ADDRESSES._cache:
        for lock in cache._in_use.values():
            lock.close()
    monkeypatch.setattr(addresses, "ADDRESSES", FsspecAddresses())


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


def test_a_copy_is_used_again_until_the_file_changes(memory: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/x.txt", b"first\n")
    assert list(read_input("memory://x.txt")) == ["first"]
    opened: list[str] = []
    original = type(memory)._open

    def remembering(self: object, path: str, *rest: object, **more: object) -> object:
        opened.append(path)
        return original(self, path, *rest, **more)

    monkeypatch.setattr(type(memory), "_open", remembering)
    new_process(monkeypatch)
    assert list(read_input("memory://x.txt")) == ["first"]
    assert opened == []
    memory.pipe_file("/x.txt", b"second\n")
    opened.clear()
    assert list(read_input("memory://x.txt")) == ["first"], "a process must see one version"
    new_process(monkeypatch)
    assert list(read_input("memory://x.txt")) == ["second"]
    assert opened == ["/x.txt"]


def test_a_damaged_copy_is_fetched_again(memory: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/x.txt", b"first\n")
    assert list(read_input("memory://x.txt")) == ["first"]
    (copy,) = cache.glob("*/x.txt")
    copy.write_bytes(b"worst\n")
    new_process(monkeypatch)
    assert list(read_input("memory://x.txt")) == ["first"]
    (record,) = cache.glob("*/record.json")
    record.write_text(record.read_text().replace("x.txt", "../x.txt"))
    new_process(monkeypatch)
    assert list(read_input("memory://x.txt")) == ["first"]


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


def test_an_impossible_limit_is_refused(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/x.txt", b"x\n")
    for limit in ("0", "-1", "many", "nan"):
        monkeypatch.setenv(LIMIT, limit)
        with pytest.raises(UserError, match=f"NMT_CACHE_GB={limit} must be a number of GB above 0"):
            read_input("memory://x.txt")


def test_the_fingerprint_of_a_file_at_an_address_is_not_asked_for_outside_of_preparation(memory: Any) -> None:
    memory.pipe_file("/x.tsv", b"one\teins\n")
    config = DataConfig(source="files", train=["memory://x.tsv"])
    assert registry.fingerprint(config, "train")["files"]
    assert registry.fingerprint_if_here(config, "train") is None


@pytest.mark.slow
def test_corpora_at_addresses_are_prepared_like_local_ones_and_training_does_not_fetch_them(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    new_process(monkeypatch)
    chosen = [*settings, "data.train=[memory://toy.en,memory://toy.de]", f"paths.data={tmp_path / '0'}"]
    assert main(["batch", *chosen, "training.batch_tokens=300"]) == 0
    other = ["data.train=[memory://other.en,memory://toy.de]", f"paths.data={tmp_path / '0'}"]
    assert main(["batch", *settings, *other, "training.batch_tokens=300"]) == 2
