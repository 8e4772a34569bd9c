"""Addresses of files and folders, with the file systems that fsspec has in memory and for local files."""

import gzip
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.cli import main
from nmt.config.data import DataConfig
from nmt.config.folders import CACHE, expanded, local_folder
from nmt.data.sources import registry
from nmt.data.sources.files import inputs, read_pairs
from nmt.errors import UserError
from nmt.storage import remote
from nmt.storage.files import checksum
from nmt.storage.remote import FolderCopy, bring, store_changes
from nmt.text.lines import open_output, read_input
from tests.integration.toy import pairs, refuse, succeed

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


def test_input_and_output_may_be_at_addresses(memory: Any) -> None:
    memory.pipe_file("/in.txt", b"one\ntwo\n")
    with open_output("memory://out.txt") as file:
        file.writelines(f"{line}!\n".encode() for line in read_input("memory://in.txt"))
    assert memory.cat_file("/out.txt") == b"one!\ntwo!\n"
    with pytest.raises(TypeError), open_output("memory://half.txt") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert not memory.exists("/half.txt")


def test_a_copy_is_used_again_until_the_file_changes(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/x.txt", b"first\n")
    assert list(read_input("memory://x.txt")) == ["first"]
    opened: list[str] = []
    original = type(memory)._open

    def remembering(self: object, path: str, *rest: object, **more: object) -> object:
        opened.append(path)
        return original(self, path, *rest, **more)

    monkeypatch.setattr(type(memory), "_open", remembering)
    remote._copies.cache_clear()
    assert list(read_input("memory://x.txt")) == ["first"]
    assert opened == []
    memory.pipe_file("/x.txt", b"second\n")
    assert list(read_input("memory://x.txt")) == ["first"], "a process must see one version"
    opened.clear()
    remote._copies.cache_clear()
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


@pytest.mark.parametrize("name", ["memory://", "memory:/x", Path("s3://bucket/runs")])
def test_an_address_is_never_a_folder(name: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (expanded, nmt.load):
        with pytest.raises(UserError, match="is an address"):
            use(name)
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


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    """Return overrides for a tiny run."""
    found = pairs(200, 1)
    for side, language in enumerate(("en", "de")):
        (tmp_path / f"toy.{language}").write_text("".join(f"{pair[side]}\n" for pair in found))
    return [
        *("data=files", "data.corpus=toy", "data.valid=[]", "data.test=[]", "data.hold_out=0.1", "name=toy"),
        *(f"data.train=[{tmp_path}/toy.en,{tmp_path}/toy.de]", "data.max_pieces=60", "tokenizer.vocab_size=90"),
        *("model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "runtime.device=cpu"),
        *("training.batch_tokens=300", "training.warmup_steps=5", "training.valid_every=4", "training.save_every=4"),
        *("training.keep_last=2", "training.keep_best=0", "averaging.last=2", "runtime.threads=1"),
        *("runtime.precision=fp32", "runtime.workers=1", "training.valid_sentences=0", "decoding.beam=1"),
    ]


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
    assert not list(local_folder(OUTPUTS).rglob("trainer.pt"))
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
    for name in ("x/weights", "y/weights"):
        bring(folder / name)
    bring(tmp_path / "elsewhere")
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
def test_changes_are_stored_with_the_marker_last(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / "copy"
    copy = copy_of(place.format(tmp_path), tmp_path)
    copy.fetch()
    done: list[str] = []

    def noting(name: str) -> None:
        original: Callable[..., Any] = getattr(type(copy._system), name)

        def note(self: object, *paths: str, **more: object) -> object:
            done.append(f"{name} {paths[-1].removeprefix(copy._path)[1:]}")
            return original(self, *paths, **more)

        monkeypatch.setattr(type(copy._system), name, note)

    for name in ("put_file", "rm"):
        noting(name)
    with copy.storing():
        for name in ("meta.json", "weights"):
            (folder / "x").mkdir(exist_ok=True)
            (folder / "x" / name).write_text("1")
        store_changes(folder)
        store_changes(folder)
        (folder / "x" / "weights").write_text("longer")
        (folder / "x" / "meta.json").write_text("longer")
    assert [each for each in done if each.startswith("put")] == ["put_file x/weights", "put_file x/meta.json"] * 2
    assert done.index("rm x/meta.json", 2) < done.index("put_file x/weights", 2)
    for name in ("meta.json", "weights"):
        (folder / "x" / name).unlink()
    copy.store()
    assert copy._system.find(copy._path) == []


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
        with pytest.raises(UserError, match=r"has changes that could not be stored at memory://run: copy its files"):
            copy_of("memory://run", tmp_path).fetch()
    assert memory.cat_file("/run/x") == b"1"
    copy.fetch()


def test_impossible_places_are_refused(settings: list[str]) -> None:
    assert "s4:// is not known; did you mean s3" in refuse(["data", *settings, "paths.data=s4://bucket/data"])
    assert "lists no files" in refuse(["data", *settings, "paths.data=https://host/data"])
    assert "works in local folders only" in refuse(["table3", f"paths.outputs={OUTPUTS}"])
