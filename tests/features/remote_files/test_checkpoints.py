"""Checkpoints at addresses: a model that translates, a member of an ensemble, and one that a run begins from."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.config.folders import COPIES, local_folder
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import WEIGHTS
from nmt.storage.files import checksum
from nmt.storage.mirror import Mirror
from tests.features.remote_files.test_folders import settings as settings  # noqa: PLC0414 - a fixture
from tests.integration.toy import refuse, succeed

RUN = "memory://store/runs/toy"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], Path]]:
    """Yield settings, and the folder of a short run with three checkpoints and an average."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NMT_INSTALL", raising=False)
        words = [*settings.__wrapped__(folder), f"paths.data={folder}/data"]  # type: ignore[attr-defined]
        for command in ("data", "train", "average"):
            succeed([command, *words, "training.steps=8", f"paths.outputs={folder}/runs"])
        yield words, folder / "runs"


@pytest.fixture
def stored(memory: Any, trained: tuple[list[str], Path]) -> tuple[list[str], Path]:
    """Store the run at an address."""
    Mirror(RUN, trained[1] / "toy", "paths.outputs").push()
    (trained[1] / "toy" / ".mirror.json").unlink()  # so that it is stored again in the next test
    return trained


def fetched(address: str) -> list[str]:
    """Return the folders of the weights that are here of a run at an address."""
    return sorted(each.parent.name for each in local_folder(address).rglob(WEIGHTS))


def translate(words: list[str], folder: Path, *more: str) -> str:
    (folder / "text").write_text("the old man sees a stone\nthe king finds a tree\n")
    words = [*words, *more, "engine=torch", f"input={folder}/text", f"output={folder}/out"]  # needs no comparison
    return succeed(["translate", *words]) + (folder / "out").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "same"), [("", "averaged"), ("/checkpoints/last", "last"), ("/checkpoints/4", "4")])
def test_a_checkpoint_at_an_address_translates_like_the_one_here(
    stored: tuple[list[str], Path], tmp_path: Path, name: str, same: str
) -> None:
    words, runs = stored
    here = translate([*words, f"paths.outputs={runs}"], tmp_path, f"checkpoint={same}")
    there = translate([*words, f"paths.outputs={tmp_path}/other"], tmp_path, f"checkpoint={RUN}{name}")
    assert there.splitlines()[-2:] == here.splitlines()[-2:]
    wanted = resolve(runs / "toy", same).resolve().name
    assert fetched(RUN) == [wanted], "the weights of no other checkpoint are fetched"
    assert not list(local_folder(RUN).rglob("trainer.pt"))


@pytest.mark.parametrize(("name", "checkpoint", "same"), [("", "averaged", "averaged"), ("", "4", "4"),
                                                          ("/checkpoints/8", "averaged", "8")])  # fmt: skip
def test_a_model_at_an_address_is_loaded_in_python(
    stored: tuple[list[str], Path], name: str, checkpoint: str, same: str
) -> None:
    text, (_, runs) = ["the old man sees a stone"], stored
    there = nmt.load(f"{RUN}{name}", checkpoint=checkpoint).translate(text)
    assert there == nmt.load(runs / "toy", checkpoint=same).translate(text)
    assert fetched(RUN) == [resolve(runs / "toy", same).resolve().name]


@pytest.mark.parametrize("outputs", ["memory://store/checkpoints", "memory://checkpoints"])
def test_a_run_below_a_folder_called_checkpoints_is_found(
    memory: Any, trained: tuple[list[str], Path], outputs: str
) -> None:
    runs = trained[1]
    Mirror(f"{outputs}/toy", runs / "toy", "paths.outputs").push()
    (runs / "toy" / ".mirror.json").unlink()
    for name, same in (("", "averaged"), ("/checkpoints/4", "4")):
        there, here = nmt.load(f"{outputs}/toy{name}"), nmt.load(runs / "toy", checkpoint=same)
        assert there.checkpoint.sha256 == here.checkpoint.sha256


@pytest.mark.parametrize(("address", "problem"), [
    ("memory://store/runs/none", "there is no checkpoint of a run at memory://store/runs/none"),
    (f"{RUN}/checkpoints/5", "no checkpoint 5 in .*; there are step-00000004, step-00000008, averaged"),
])  # fmt: skip
def test_a_model_that_an_address_does_not_have_is_named(
    stored: tuple[list[str], Path], address: str, problem: str
) -> None:
    with pytest.raises(nmt.UserError, match=problem):
        nmt.load(address)


def test_members_of_an_ensemble_may_be_at_addresses(stored: tuple[list[str], Path], tmp_path: Path) -> None:
    words, runs = stored
    of_both = [translate([*words, f"paths.outputs={runs}"], tmp_path, "checkpoint=4", f"decoding.ensemble=[{each}]")
               for each in ("8", f"{RUN}/checkpoints/8")]  # fmt: skip
    assert of_both[0].splitlines()[-2:] == of_both[1].splitlines()[-2:]


@pytest.mark.parametrize(("name", "same"), [("", "averaged"), ("/checkpoints/4", "4")])
def test_a_run_begins_from_a_model_at_an_address(
    stored: tuple[list[str], Path], tmp_path: Path, name: str, same: str
) -> None:
    words, runs = stored
    (tmp_path / "new").mkdir()
    begun = [*words, "training.steps=2", "data.corpus=tuned"]
    weights = []
    for number, origin in enumerate((f"{RUN}{name}", str(resolve(runs / "toy", same)))):
        chosen = [*begun, f"name=tuned{number}", f"training.init_from={origin}", f"paths.outputs={tmp_path}/new"]
        succeed(["data", *chosen])
        succeed(["train", *chosen])
        weights.append(checksum(tmp_path / "new" / f"tuned{number}" / "checkpoints" / "step-00000002" / WEIGHTS))
    assert weights[0] == weights[1]
    assert fetched(RUN) == [resolve(runs / "toy", same).resolve().name]


def test_scores_of_models_at_addresses_have_folders_of_their_own(
    stored: tuple[list[str], Path], tmp_path: Path
) -> None:
    words, _ = stored
    succeed(["eval", *words, f"paths.outputs={tmp_path}/other", f"checkpoint={RUN}/checkpoints/best"])
    (folder,) = [each for each in (tmp_path / "other" / "toy" / "eval").iterdir() if each.is_dir()]
    assert folder.name.startswith("best-")


def test_what_is_not_there_is_an_error_of_one_line(stored: tuple[list[str], Path], tmp_path: Path) -> None:
    words = [*stored[0], f"paths.outputs={tmp_path}/other", f"input={__file__}"]
    assert "there is no checkpoint of a run at memory://store/none" in refuse(
        ["translate", *words, "checkpoint=memory://store/none"]
    )
    assert "no checkpoint 77" in refuse(["translate", *words, f"checkpoint={RUN}/checkpoints/77"])
    begun = ["train", *words, "name=tuned"]
    said = refuse([*begun, "training.init_from=memory://store/none/checkpoints/best"])
    assert "training.init_from=memory://store/none/checkpoints/best: there is no checkpoint of a run" in said
    assert "s4:// is not known; did you mean s3" in refuse([*begun, "training.init_from=s4://store/runs/toy"])


def test_damage_at_the_address_is_an_error_of_one_line(
    memory: Any, stored: tuple[list[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COPIES, str(tmp_path / "elsewhere"))
    (name,) = [each for each in memory.find("/store/runs/toy/checkpoints/averaged") if WEIGHTS in each]
    memory.pipe_file(name, b"damaged")
    words = [*stored[0], f"paths.outputs={tmp_path}/other", f"input={__file__}", f"checkpoint={RUN}"]
    assert "is damaged: its checksum is another one" in refuse(["translate", *words])


def test_a_missing_package_is_an_error_of_one_line(
    stored: tuple[list[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    words = [*stored[0], f"paths.outputs={tmp_path}/other"]
    assert "s3fs" in refuse(["translate", *words, "checkpoint=s3://bucket/runs/toy"])
    assert "s3fs" in refuse(["train", *words, "name=tuned", "training.init_from=s3://bucket/runs/toy"])
