"""paths.data and paths.outputs at addresses: the same files as in local folders, on whichever machine."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.config.folders import COPIES, local_folder
from nmt.features.remote_files.folder import FsspecFolder
from nmt.storage import lease
from nmt.storage.files import checksum
from nmt.storage.index import INDEX, Entry, read_index
from tests.integration.toy import pairs, refuse, succeed
from tests.quick_processes import run_together, start_group

DATA, OUTPUTS = "memory://bucket/data", "memory://bucket/runs"


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
        *("training.keep_last=2", "training.keep_best=1", "averaging.last=2", "runtime.threads=1"),
        *("runtime.precision=fp32", "runtime.workers=1", "training.valid_sentences=0", "decoding.beam=1"),
    ]


def machine(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be on another machine, which has copies of its own."""
    monkeypatch.setenv(COPIES, str(tmp_path / f"machine {number}"))


def test_a_file_of_this_machine_is_replaced_only_when_the_new_one_is_complete(tmp_path: Path) -> None:
    folder = FsspecFolder(f"file://{tmp_path}/store", "paths.data")
    folder.write("index.json", b"old")
    (tmp_path / "opened before").hardlink_to(tmp_path / "store" / "index.json")
    folder.write("index.json", b"new")
    assert folder.read("index.json") == b"new"
    assert (tmp_path / "opened before").read_bytes() == b"old"
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["index.json"]


def files(folder: Path) -> dict[str, str]:
    """Return the checksums of files; seconds and addresses differ in these two."""
    found = (each for each in folder.rglob("*") if each.is_file() and not each.name.startswith("."))
    return {
        str(each.relative_to(folder)): checksum(each)
        for each in found
        if each.name not in ("manifest.json", "environment.json")
    }


def corpus_files() -> set[str]:
    """Return the files of the copy of the corpus, without its manifest."""
    return {*files(local_folder(DATA) / "toy")}


def at(address: str) -> dict[str, Entry]:
    return read_index(FsspecFolder(address, "paths.outputs"), address)


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
    prepared = files(tmp_path / "data" / "toy")
    assert files(local_folder(DATA) / "toy") == prepared
    machine(2, tmp_path, monkeypatch)
    assert "running again" not in succeed(["data", *remote])
    succeed(["train", *remote, "training.steps=8"])
    machine(3, tmp_path, monkeypatch)
    assert "going on from step 8" in succeed(["train", *remote, "training.steps=16"])
    assert corpus_files() == {*prepared} - {"train.en", "train.de"}, "training reads tokens, not text"
    steps = {name.split("/")[1] for name in at(f"{OUTPUTS}/toy") if name.startswith("checkpoints/step-")}
    assert steps == {each.name for each in (tmp_path / "runs/toy/checkpoints").glob("step-*")}
    machine(4, tmp_path, monkeypatch)
    succeed(["average", *remote])
    machine(5, tmp_path, monkeypatch)
    succeed(["eval", *remote])
    assert corpus_files() == {name for name in prepared if not name.startswith("train.")}
    fetched = sorted(each.parent.name for each in local_folder(OUTPUTS).rglob("model.safetensors"))
    assert fetched == ["averaged"], "evaluation needs the weights of no other checkpoint"
    assert not list(local_folder(OUTPUTS).rglob("trainer.pt"))
    kept = ("model.safetensors", "tokenizer.model", ".hyp.txt")
    expected = {name: sha for name, sha in files(tmp_path / "runs" / "toy").items() if name.endswith(kept)}
    found = {name: entry.sha256 for name, entry in at(f"{OUTPUTS}/toy").items()}
    assert expected
    assert {name: found.get(name) for name in expected} == expected
    stored = [name for name in memory.find("/bucket") if not name.endswith(INDEX)]
    listed = [entry for address in (DATA, OUTPUTS) for entry in at(f"{address}/toy").values() if not entry.link]
    assert len(stored) == len(listed), "old versions and leases must be gone"


@pytest.mark.slow
def test_checkpoints_that_training_has_pruned_elsewhere_are_not_missed(
    memory: Any, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = [*settings, f"paths.data={DATA}", f"paths.outputs={OUTPUTS}", "training.keep_best=0"]
    machine(1, tmp_path, monkeypatch)
    succeed(["data", *remote])
    succeed(["train", *remote, "training.steps=8"])
    machine(2, tmp_path, monkeypatch)
    succeed(["average", *remote])
    machine(1, tmp_path, monkeypatch)
    succeed(["train", *remote, "training.steps=12"])
    machine(2, tmp_path, monkeypatch)
    assert "averaged 2 checkpoints" in succeed(["average", *remote])
    assert sorted(each.name for each in local_folder(OUTPUTS).glob("toy/checkpoints/step-*")) == [
        "step-00000008", "step-00000012",
    ]  # fmt: skip


def test_training_text_is_fetched_if_it_is_scored(
    memory: Any, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = [*settings, f"paths.data={DATA}", f"paths.outputs={tmp_path}/runs", "checkpoint=last"]
    machine(1, tmp_path, monkeypatch)
    succeed(["data", *remote])
    succeed(["train", *remote, "training.steps=4"])
    machine(2, tmp_path, monkeypatch)
    assert "\ntrain: 166 sentences" in succeed(["eval", *remote, "evaluation.splits=[train]"])
    assert {name for name in corpus_files() if name.startswith("train.")} == {"train.en", "train.de"}
    machine(3, tmp_path, monkeypatch)
    succeed(["eval", *remote, "evaluation.splits=[test]"])
    assert not [name for name in corpus_files() if name.startswith("train.")]


@pytest.mark.slow
def test_what_was_prepared_before_an_interruption_is_there_on_another_machine(
    memory: Any, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(1, tmp_path, monkeypatch)
    remote = [*settings, f"paths.data={DATA}"]
    assert "tokenizer.vocab_size=5000" in refuse(["data", *remote, "tokenizer.vocab_size=5000"])
    machine(2, tmp_path, monkeypatch)
    said = succeed(["data", *remote])
    assert "running again" not in said


def main_with_own_copies(arguments: Sequence[str], copies: Path) -> int:
    """Run `nmt` as a process of a training, on a machine of its own."""
    os.environ[COPIES] = str(copies / os.environ["RANK"])
    return main(arguments)


@pytest.mark.slow
def test_processes_that_share_no_folder_train_and_resume(settings: list[str], tmp_path: Path) -> None:
    succeed(["data", *settings, f"paths.data={tmp_path}/data"])
    succeed(["data", *settings, f"paths.data=file://{tmp_path}/there/data"])
    folders = [f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/runs"]
    done = run_together(["train", *settings, *folders, "training.steps=8"], processes=2)
    assert done.returncode == 0, done.stderr
    addresses = [f"paths.data=file://{tmp_path}/there/data", f"paths.outputs=file://{tmp_path}/there/runs"]
    for steps in (4, 8):
        words = ["train", *settings, *addresses, f"training.steps={steps}"]
        ended = [each.wait() for each in start_group(main_with_own_copies, words, tmp_path / "copies", processes=2)]
        assert [each.returncode for each in ended] == [0, 0], [each.stderr for each in ended]
    weights = "checkpoints/step-00000008/model.safetensors"
    assert at(f"file://{tmp_path}/there/runs/toy")[weights].sha256 == checksum(tmp_path / "runs" / "toy" / weights)


def test_a_place_that_is_in_use_is_refused_with_its_owner(
    memory: Any, settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.01)
    folder = FsspecFolder(f"{OUTPUTS}/toy", "paths.outputs")
    folder.write("owner.lease", json.dumps({"owner": "process 7 on gpu1", "number": 0}).encode())
    numbers = iter(range(1, 1000))
    read = FsspecFolder.read

    def renewed(self: FsspecFolder, name: str) -> bytes | None:
        if name == "owner.lease":
            return json.dumps({"owner": "process 7 on gpu1", "number": next(numbers)}).encode()
        return read(self, name)

    monkeypatch.setattr(FsspecFolder, "read", renewed)
    said = refuse(["train", *settings, f"paths.outputs={OUTPUTS}"])
    assert f"{OUTPUTS}/toy is being trained by another process: wait until it is done" in said
    assert said.rstrip().endswith("(process 7 on gpu1)")


def test_a_list_of_somebody_else_is_refused(memory: Any, settings: list[str]) -> None:
    memory.pipe_file(f"/bucket/runs/toy/{INDEX}", b'{"format": 1}')
    assert f"{OUTPUTS}/toy/{INDEX} is damaged, or nmt has not written it" in refuse(
        ["translate", *settings, f"paths.outputs={OUTPUTS}"]
    )


def test_an_unknown_kind_of_address_is_refused(settings: list[str]) -> None:
    said = refuse(["data", *settings, "paths.data=s4://bucket/data"])
    assert "paths.data=s4://bucket/data/toy/owner.lease: s4:// is not known; did you mean s3" in said


def test_commands_of_many_runs_refuse_addresses() -> None:
    assert "works in local folders only" in refuse(["table3", f"paths.outputs={OUTPUTS}"])


def test_folders_of_different_addresses_are_different(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["s3://a/b", "s3://a-b", "gs://a/b", "s3://a/b/c", "s3://A/b"]
    assert len({local_folder(name) for name in names}) == len(names)
    assert local_folder("s3://a/b/") == local_folder("s3://a/b")
    assert local_folder("outputs/x") == Path("outputs/x")


@pytest.mark.parametrize("name", ["a", "b/c/d.txt"])
def test_files_of_a_folder_are_created_once_replaced_and_removed(memory: Any, tmp_path: Path, name: str) -> None:
    for address in ("memory://bucket/x", f"file://{tmp_path}/x"):
        folder = FsspecFolder(address, "paths.data")
        assert folder.read(name) is None
        folder.remove(name)
        assert folder.create(name, b"1")
        assert not folder.create(name, b"2")
        assert folder.read(name) == b"1"
        folder.write(name, b"3")
        assert folder.read(name) == b"3"
        folder.fetch(name, tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == b"3"
        (tmp_path / "fetched").write_bytes(b"4")
        folder.store(tmp_path / "fetched", name)
        assert folder.read(name) == b"4"
        folder.remove(name)
        assert folder.read(name) is None
        (tmp_path / "fetched").unlink()
