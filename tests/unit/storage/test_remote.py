"""Addresses of files and folders, with the file systems that fsspec has in memory and for local files."""

import gzip
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.folders import CACHE, expanded, local_folder
from nmt.config.saved import to_yaml
from nmt.data.sources.files import inputs, read_pairs
from nmt.errors import UserError
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, write
from nmt.runs.origin import find_origin
from nmt.storage import remote
from nmt.storage.files import checksum, remove, write_text
from nmt.storage.remote import FolderCopy, bring, store_changes
from nmt.text.lines import open_output, read_input
from tests.integration.toy import refuse, succeed

DATA, OUTPUTS = "memory://bucket/data", "memory://bucket/runs"


def machine(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a new process on another machine, which has copies of its own."""
    monkeypatch.setenv(CACHE, str(tmp_path / f"machine {number}"))
    remote._copies.cache_clear()
    remote._copies_here.clear()


@pytest.fixture(autouse=True)
def first_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(0, tmp_path, monkeypatch)
    monkeypatch.delenv("NMT_INSTALL", raising=False)


@pytest.fixture
def memory() -> Iterator[Any]:
    """Yield the file system in memory, empty."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()


def test_files_at_addresses_are_read_in_their_formats_and_in_the_order_of_their_names(memory: Any) -> None:
    memory.pipe_file("/corpus/a.en.gz", gzip.compress(b"one\ntwo\n"))
    memory.pipe_file("/corpus/a.de", b"eins\nzwei\n")
    files = inputs(["memory://corpus/a.en.gz", "memory://corpus/a.de"], "train")
    assert list(read_pairs(files, ("en", "de"))) == [("one", "eins"), ("two", "zwei")]
    for number in (10, 2, 1):
        memory.pipe_file(f"/corpus/part-{number:02}.tsv", f"{number}\tx\n".encode())
    files = inputs(["memory://corpus/part-*.tsv"], "train")
    assert list(read_pairs(files, ("en", "de"))) == [("1", "x"), ("2", "x"), ("10", "x")]
    with pytest.raises(UserError, match=r"input=memory://corpus/part-\* matches 3 files: name one"):
        read_input("memory://corpus/part-*")


def test_output_at_an_address_appears_completely_or_not_at_all(memory: Any) -> None:
    with open_output("memory://out.txt") as file:
        file.write(b"one\n")
    assert memory.cat_file("/out.txt") == b"one\n"
    with pytest.raises(TypeError), open_output("memory://half.txt") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert not memory.exists("/half.txt")


def test_a_process_sees_one_version_of_a_file_and_the_next_one_the_newest(memory: Any) -> None:
    for content in ("first", "second"):
        memory.pipe_file("/x.txt", f"{content}\n".encode())
        remote._copies.cache_clear()  # a new process
        assert list(read_input("memory://x.txt")) == [content]
    memory.pipe_file("/x.txt", b"third\n")
    assert list(read_input("memory://x.txt")) == ["second"]


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
        ("gs://bucket/x", r"needs the package gcsfs: .*pip install 'gcsfs>="),
    ],
)
def test_bad_addresses_are_errors_of_one_line(
    memory: Any, monkeypatch: pytest.MonkeyPatch, address: str, complaint: str
) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    memory.pipe_file("/folder/x.en", b"x")
    with pytest.raises(UserError, match=complaint) as error:
        inputs([address], "train")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["memory:/x", Path("s3://bucket/runs")])
def test_an_address_is_never_a_folder(name: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (expanded, nmt.load):
        with pytest.raises(UserError, match="is an address"):
            use(name)
    for setting in ("checkpoint", "training.init_from"):
        assert main(["train" if "." in setting else "translate", "input=/dev/null", f"{setting}={name}"]) == 2
    assert not [each for each in tmp_path.iterdir() if ":" in each.name]


def files(folder: Path) -> dict[str, str]:
    """Return the checksums of files, but for those that have seconds or addresses in them."""
    found = (each for each in folder.rglob("*") if each.is_file() and not each.name.startswith("."))
    return {
        str(each.relative_to(folder)): checksum(each)
        for each in found
        if each.name not in ("manifest.json", "environment.json")
    }


@pytest.mark.slow
def test_a_run_that_moves_between_machines_ends_as_one_in_local_folders(
    memory: Any, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*settings, "training.valid_every=4", "training.save_every=4", "training.keep_last=2"]
    settings += ["training.keep_best=0", "training.valid_sentences=0", "decoding.beam=1"]
    local = [*settings, f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/runs", "training.steps=16"]
    for command in ("data", "train", "average", "eval"):
        succeed([command, *local])
    remote = [*settings, f"paths.data={DATA}", f"paths.outputs={OUTPUTS}"]
    succeed(["data", *remote])
    machine(1, tmp_path, monkeypatch)
    manifest = memory.cat_file("/bucket/data/toy/manifest.json")
    succeed(["data", *remote])
    assert memory.cat_file("/bucket/data/toy/manifest.json") == manifest, "nothing is prepared again"
    assert files(local_folder(DATA) / "toy") == files(tmp_path / "data" / "toy")
    succeed(["train", *remote, "training.steps=8"])
    machine(2, tmp_path, monkeypatch)
    assert "going on from step 8" in succeed(["train", *remote, "training.steps=16"])
    loaded = sorted(each.parent.name for each in local_folder(OUTPUTS).rglob("trainer.pt"))
    assert loaded[-3:] == ["step-00000012", "step-00000016"], "of the others, only the newest was needed"
    for number, command in enumerate(("average", "eval"), start=3):
        machine(number, tmp_path, monkeypatch)
        succeed([command, *remote])
    fetched = sorted(each.parent.name for each in local_folder(OUTPUTS).rglob("model.safetensors"))
    assert fetched == ["averaged"], "evaluation needs the weights of no other checkpoint"
    expected = files(tmp_path / "runs" / "toy")
    stored = {name.removeprefix("/bucket/runs/toy/") for name in memory.find("/bucket/runs/toy")}
    links = ("checkpoints/last/", "checkpoints/best/")
    assert stored == {name for name in [*expected, "environment.json"] if not name.startswith(links)}
    for name in (each for each in expected if each.endswith((".safetensors", ".model", ".hyp.txt")) and each in stored):
        memory.get_file(f"/bucket/runs/toy/{name}", str(tmp_path / "file"))
        assert checksum(tmp_path / "file") == expected[name]


def copy_of(address: str, tmp_path: Path) -> FolderCopy:
    return FolderCopy(address, tmp_path / "copy", "paths.outputs", "meta.json")


def test_a_copy_follows_the_address(memory: Any, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    memory.pipe({"/run/settings": b"1", "/run/x/meta.json": b"1", "/run/x/weights": b"1", "/run/y/meta.json": b"1"})
    copy = copy_of("memory://run", tmp_path)
    copy.fetch(["weights"])
    assert {*files(folder)} == {"settings", "x/meta.json", "y/meta.json"}
    bring(folder / "x" / "weights")
    (folder / "x" / "weights").write_text("unchanged, because the marker is")
    memory.rm("/run/y", recursive=True)
    memory.pipe({"/run/settings": b"2", "/run/../outside": b"1"})
    copy.fetch(["weights"])
    assert {*files(folder)} == {"settings", "x/meta.json", "x/weights"}
    assert (folder / "settings").read_text() == "2"
    assert (folder / "x" / "weights").read_text().startswith("unchanged")
    memory.pipe("/run/x/meta.json", b"2")
    copy.fetch()
    assert (folder / "x" / "weights").read_text() == "1"


@pytest.mark.parametrize("place", ["memory://run", "file://{}/there"])
def test_the_marker_is_stored_after_the_files_that_it_describes(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / "copy"
    copy = copy_of(place.format(tmp_path), tmp_path)
    copy.fetch()
    put, marker = copy._system.put_file, f"{copy._path}/x/meta.json"
    for content, before in (("1", None), ("longer", b"1")):
        with copy.storing():
            (folder / "x").mkdir(exist_ok=True)
            for name in ("meta.json", "weights"):
                (folder / "x" / name).write_text(content)
            with monkeypatch.context() as patch:
                patch.setattr(copy._system, "put_file", lambda *paths: 1 / 0 if "weights" in paths[0] else put(*paths))
                store_changes(folder)
            assert (copy._system.cat_file(marker) if before else copy._system.exists(marker)) == (before or False)
        assert copy._system.cat_file(marker) == content.encode()


def test_a_folder_that_is_deleted_here_is_deleted_there_with_files_that_were_never_here(
    memory: Any, tmp_path: Path
) -> None:
    memory.pipe({f"/run/{name}": b"1" for name in ("x/meta.json", "x/weights", "y/meta.json", "y/weights")})
    copy = copy_of("memory://run", tmp_path)
    copy.fetch(["weights"])
    with copy.storing():
        remove(tmp_path / "copy" / "x")
    assert memory.find("/run") == ["/run/y/meta.json", "/run/y/weights"]


def test_a_copy_that_is_in_use_is_left_alone(memory: Any, tmp_path: Path) -> None:
    used, other = copy_of("memory://run", tmp_path), copy_of("memory://run", tmp_path)
    used.fetch()
    with used.storing():
        (tmp_path / "copy" / "x").write_text("new")
        other.fetch()
        assert (tmp_path / "copy" / "x").exists()


def test_changes_that_could_not_be_stored_are_never_replaced(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("memory://run", tmp_path)
    copy.fetch()
    with copy.storing():
        (copy.folder / "x").write_text("1")
        with monkeypatch.context() as patch:
            patch.setattr(type(copy._system), "put_file", lambda *_: 1 / 0)
            store_changes(copy.folder)
        assert "warning: paths.outputs=memory://run: division by zero" in capsys.readouterr().err
    assert memory.cat_file("/run/x") == b"1"
    copy.fetch()
    monkeypatch.setattr(type(copy._system), "put_file", lambda *_: 1 / 0)
    with pytest.raises(UserError, match=r"by zero: check the address.* network; .*: copy its files"), copy.storing():
        (copy.folder / "x").write_text("2")
    with pytest.raises(UserError, match=r"has changes that could not be stored at memory://run: copy its files"):
        copy_of("memory://run", tmp_path).fetch()
    assert (copy.folder / "x").read_text() == "2"


def test_changes_whose_storing_is_killed_are_never_replaced(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copy_of("memory://run", tmp_path)
    copy.fetch()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(copy._system), "put_file", interrupt)
    with pytest.raises(KeyboardInterrupt), copy.storing():
        (copy.folder / "x").write_text("1")
    with pytest.raises(UserError, match="has changes that could not be stored"):
        copy_of("memory://run", tmp_path).fetch()
    assert (copy.folder / "x").read_text() == "1"


def test_other_runs_are_fetched_to_be_compared_or_begun_from(
    memory: Any, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        named = compose([*settings, f"name={name}", f"paths.outputs={OUTPUTS}", "training.init_from=a"])
        text = to_yaml(named)
        write(
            tmp_path / "runs" / name / "checkpoints" / "averaged",
            Checkpoint(meta=CheckpointMeta(step=4), weights={}, config_text=text),
        )
        write_text(tmp_path / "runs" / name / "config.yaml", text)
    memory.put(f"{tmp_path}/runs", "/bucket/runs", recursive=True)
    overrides = [*settings, f"paths.data={tmp_path}", f"paths.outputs={OUTPUTS}", "training.init_from=a"]
    assert find_origin(compose(overrides)) == local_folder(OUTPUTS) / "a" / "checkpoints" / "averaged"
    machine(1, tmp_path, monkeypatch)
    assert "no settings differ" in succeed(["report", *overrides, "name=a", "compare=[a,b]"])


def test_impossible_places_are_refused(settings: list[str]) -> None:
    assert "s4:// is not known; did you mean s3" in refuse(["data", *settings, "paths.data=s4://bucket/data"])
    assert "lists no files" in refuse(["data", *settings, "paths.data=https://host/data"])
    assert "works in local folders only" in refuse(["table3", f"paths.outputs={OUTPUTS}"])
