"""paths.data and paths.outputs at addresses: the same files as in local folders, on whichever machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config.folders import CACHE, local_folder
from nmt.storage import remote
from nmt.storage.files import checksum
from nmt.storage.remote import FolderCopy, store_changes
from tests.integration.toy import pairs, refuse, succeed

DATA, OUTPUTS = "memory://bucket/data", "memory://bucket/runs"
MARKER = "meta.json"


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


def machine(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be on another machine, which has copies of its own."""
    monkeypatch.setenv(CACHE, str(tmp_path / f"machine {number}"))


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
    machine(1, tmp_path, monkeypatch)
    succeed(["data", *remote])
    machine(2, tmp_path, monkeypatch)
    manifest = memory.cat_file("/bucket/data/toy/manifest.json")
    succeed(["data", *remote])
    assert memory.cat_file("/bucket/data/toy/manifest.json") == manifest, "nothing is prepared again"
    assert files(local_folder(DATA) / "toy") == files(tmp_path / "data" / "toy")
    succeed(["train", *remote, "training.steps=8"])
    machine(3, tmp_path, monkeypatch)
    assert "going on from step 8" in succeed(["train", *remote, "training.steps=16"])
    assert not (local_folder(OUTPUTS) / "toy/checkpoints/step-00000004").exists()
    machine(4, tmp_path, monkeypatch)
    succeed(["average", *remote])
    machine(5, tmp_path, monkeypatch)
    succeed(["eval", *remote])
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


def test_a_copy_follows_the_address(memory: Any, tmp_path: Path) -> None:
    memory.pipe({"/run/settings": b"1", "/run/x/meta.json": b"1", "/run/x/weights": b"1", "/run/y/meta.json": b"1"})
    copy = FolderCopy("memory://run", tmp_path / "copy", "paths.outputs", MARKER)
    copy.fetch(["weights"])
    assert {*files(tmp_path / "copy")} == {"settings", "x/meta.json", "y/meta.json"}
    copy.fetch(["weights"], lambda: ["x/weights", "y/weights"])
    (tmp_path / "copy" / "x" / "weights").write_text("unchanged, because the marker is")
    memory.rm("/run/y", recursive=True)
    memory.pipe({"/run/settings": b"2", "/run/../outside": b"1"})
    copy.fetch(["weights"])
    assert {*files(tmp_path / "copy")} == {"settings", "x/meta.json", "x/weights"}
    assert (tmp_path / "copy" / "settings").read_text() == "2"
    assert (tmp_path / "copy" / "x" / "weights").read_text().startswith("unchanged")
    memory.pipe("/run/x/meta.json", b"2")
    copy.fetch()
    assert (tmp_path / "copy" / "x" / "weights").read_text() == "1"


@pytest.mark.parametrize("place", ["memory://run", "file://{}/there"])
def test_changes_are_stored_with_the_marker_last(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / "copy"
    copy = FolderCopy(place.format(tmp_path), folder, "paths.outputs", MARKER)
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
    used, other = (FolderCopy("memory://run", tmp_path / "copy", "paths.outputs", MARKER) for _ in range(2))
    used.fetch()
    with used.storing():
        (tmp_path / "copy" / "x").write_text("new")
        other.fetch()
        assert (tmp_path / "copy" / "x").exists()


def test_storing_that_fails_is_done_again(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = FolderCopy("memory://run", tmp_path / "copy", "paths.outputs", MARKER)
    copy.fetch()
    with copy.storing():
        (copy.folder / "x").write_text("1")
        with monkeypatch.context() as patch:
            patch.setattr(type(copy._system), "put_file", lambda *_: 1 / 0)
            store_changes(copy.folder)
        assert "warning: paths.outputs=memory://run: division by zero" in capsys.readouterr().err
    assert memory.cat_file("/run/x") == b"1"
    assert remote._storing == {}


def test_impossible_places_are_refused(settings: list[str]) -> None:
    assert "s4:// is not known; did you mean s3" in refuse(["data", *settings, "paths.data=s4://bucket/data"])
    assert "lists no files" in refuse(["data", *settings, "paths.data=https://host/data"])
    assert "works in local folders only" in refuse(["table3", f"paths.outputs={OUTPUTS}"])
