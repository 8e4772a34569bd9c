"""Checkpoints: whole or not there, found by name, and never taken for right when they are not."""

import json
import os
import re
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from nmt.errors import UserError
from nmt.runs import checkpoint as checkpoint_format
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, DamagedError, check_weights, load
from nmt.runs.checkpoints import Checkpoints, load_last_good, resolve
from nmt.storage.files import checksum, seal
from tests.quick_processes import Running, wait_for

FILES = ("model.safetensors", "trainer.pt", "tokenizer.model", "config.yaml", "meta.json")
Save = Callable[..., Path]


def weights_of(step: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {"embedding": torch.randn(7, 4, generator=generator), "bias": torch.randn(4, generator=generator)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "outputs" / "demo"


def checkpoint_of(step: int, weights: dict[str, Tensor] | None = None, **meta: Any) -> Checkpoint:
    return Checkpoint(
        meta=CheckpointMeta(step=step, **meta),
        weights=weights_of(step) if weights is None else weights,
        trainer={"epoch": 1, "moments": [torch.full((3,), float(step))]},
        tokenizer_files={"tokenizer.model": b"pieces"},
        config_text=f"seed: {step}\n",
    )


@pytest.fixture
def save(run: Path) -> Save:
    def save(
        step: int, kept: Checkpoints | None = None, trainer: dict[str, Any] | None = None, interim: bool = False,
        only_best: bool = False, **valid: float,
    ) -> Path:  # fmt: skip
        kept = kept or Checkpoints(run)
        saved = checkpoint_of(step, valid=valid, interim=interim, only_best=only_best)
        return kept.save(replace(saved, trainer=trainer) if trainer else saved)

    return save


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_loaded_checkpoint_equals_the_saved_one(run: Path, save: Save) -> None:
    state = {"random": torch.get_rng_state(), "place": (3, 17), "adam": {0: {"step": 5.0, "mean": torch.ones(2)}}}
    path = save(1234, trainer=state, loss=1.5, bleu=float("nan"))
    assert path == run / "checkpoints" / "step-00001234"
    assert names(path) == sorted(FILES)

    checkpoint = load(path, trainer=True)

    assert checkpoint.step == 1234
    assert all(torch.equal(checkpoint.weights[name], weight) for name, weight in weights_of(1234).items())
    assert checkpoint.trainer is not None
    assert torch.equal(checkpoint.trainer["random"], cast(Tensor, state["random"]))
    assert checkpoint.trainer["place"] == (3, 17)
    assert torch.equal(checkpoint.trainer["adam"][0]["mean"], torch.ones(2))
    assert checkpoint.config_text == "seed: 1234\n"
    assert (checkpoint.path / "tokenizer.model").read_bytes() == b"pieces"
    assert checkpoint.tokenizer_files == {"tokenizer.model": b"pieces"}
    assert checkpoint.meta.valid == {"loss": 1.5}
    assert load(path).trainer is None


def test_tied_transposed_and_sliced_weights_are_loaded_unchanged(run: Path) -> None:
    tied = torch.randn(5, 3)
    weights = {"embedding": tied, "output": tied, "transposed": tied.t(), "row": tied[2], "empty": torch.zeros(0)}
    path = Checkpoints(run).save(checkpoint_of(1, weights))
    loaded = load(path).weights
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())


def test_an_object_that_needs_pickle_is_refused_when_saving(run: Path, save: Save) -> None:
    save(1)
    with pytest.raises(Exception, match=r"(?i)weights_only"):
        save(2, trainer={"path": Path("x")})
    assert names(run / "checkpoints") == ["last", "step-00000001"]


def test_steps_are_ordered_by_number(run: Path, save: Save) -> None:
    for step in (99_999_999, 100_000_000, 1_000_000_000):
        save(step)
    assert [saved.step for saved in Checkpoints(run).steps()] == [99_999_999, 100_000_000, 1_000_000_000]
    assert resolve(run, "last").name == "step-1000000000"
    save(1_000_000_000, Checkpoints(run, keep_last=2))
    assert [saved.step for saved in Checkpoints(run).steps()] == [100_000_000, 1_000_000_000]


def test_links_are_relative_and_point_to_the_last_and_the_best(run: Path, save: Save, tmp_path: Path) -> None:
    folder = run / "checkpoints"
    save(1)
    assert not (folder / "best").exists()
    save(2, loss=1.0)
    save(3, loss=2.0)
    assert (folder / "last").readlink() == Path("step-00000003")
    assert (folder / "best").readlink() == Path("step-00000002")
    save(4, loss=float("nan"))
    assert (folder / "best").readlink() == Path("step-00000002")
    run.rename(tmp_path / "moved")
    assert load(tmp_path / "moved" / "checkpoints" / "best").step == 2


@pytest.mark.parametrize(
    ("keep_last", "keep_best", "kept", "best"),
    [(2, 1, [3, 5, 6], 3), (1, 3, [1, 3, 4, 6], 3)],
)
def test_the_last_and_the_best_are_kept(
    run: Path, save: Save, keep_last: int, keep_best: int, kept: list[int], best: int
) -> None:
    scores = {1: (4.0, 10.0), 2: (9.0, 30.0), 3: (3.0, 20.0), 4: (3.0, 30.0), 5: (8.0, 5.0), 6: (7.0, 6.0)}
    checkpoints = Checkpoints(run, keep_last, keep_best)
    for step, (loss, bleu) in scores.items():
        save(step, checkpoints, loss=loss, bleu=bleu)
    assert [saved.step for saved in checkpoints.steps()] == kept
    assert names(checkpoints.folder) == sorted(["best", "last", *(f"step-{step:08d}" for step in kept)])
    assert resolve(run, "best").name == f"step-{best:08d}" == checkpoints.folder.joinpath("best").readlink().name


def test_an_interim_checkpoint_is_deleted_after_the_next_one(run: Path, save: Save) -> None:
    checkpoints = Checkpoints(run, keep_last=2)
    for step in (1, 2, 3):
        save(step, checkpoints, interim=step == 2)
        assert [saved.step for saved in checkpoints.steps()] == {1: [1], 2: [1, 2], 3: [1, 3]}[step]


def test_an_interim_checkpoint_takes_no_place_of_the_last_and_the_best(run: Path, save: Save) -> None:
    for step in (100, 200, 300, 400, 500):
        save(step, loss=1000 / step)
    save(550, Checkpoints(run, keep_last=5), interim=True, loss=2.2)  # better than 200 to 400, but never averaged
    assert [saved.step for saved in Checkpoints(run).steps()] == [100, 200, 300, 400, 500, 550]
    save(551, Checkpoints(run, keep_last=1, keep_best=2), interim=True, loss=2.2)
    assert [saved.step for saved in Checkpoints(run).steps()] == [400, 500, 551]


def test_the_best_between_scheduled_checkpoints_takes_no_place_of_the_last(run: Path, save: Save) -> None:
    checkpoints = Checkpoints(run, keep_last=3, keep_best=1)
    for step in range(25, 325, 25):
        save(step, checkpoints, only_best=step % 100 > 0, loss=1000 / step)
    assert [saved.step for saved in checkpoints.steps()] == [100, 200, 300]
    save(310, checkpoints, only_best=True, loss=5.0)  # not the best any more after a resumption from step 300
    assert [saved.step for saved in checkpoints.steps()] == [100, 200, 300, 310]


def test_the_best_link_is_removed_with_the_last_validated_checkpoint(run: Path, save: Save) -> None:
    save(1, loss=1.0)
    save(2, Checkpoints(run, keep_last=1))
    assert names(run / "checkpoints") == ["last", "step-00000002"]


def test_resolve_finds_every_kind_of_name(run: Path, save: Save) -> None:
    first, second = save(1000, loss=1.0), save(2000, loss=2.0)
    expected = {"best": first, "last": second, "step-00001000": first, "1000": first, "step-2000": second}
    assert {name: resolve(run, name) for name in expected} == expected
    assert resolve(Path("another"), str(first)) == first
    # A kill between the rename and the links leaves them old or missing; the steps count.
    (run / "checkpoints" / "last").unlink()
    assert resolve(run, "last") == second


def test_an_outdated_average_is_found_with_a_warning(run: Path, save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    averaged = run / "checkpoints" / "averaged"
    shutil.copytree(save(1000), averaged)
    assert resolve(run, "averaged") == averaged
    assert capsys.readouterr().err == ""
    save(2000)
    save(3000)
    assert resolve(run, "averaged") == averaged
    warning = f"warning: {averaged} is of step 1000, training is at step 3000: `make average` updates it\n"
    assert capsys.readouterr().err == warning
    resolve(run, "1000")
    assert capsys.readouterr().err == ""


def test_a_damaged_description_is_skipped_with_a_warning_or_an_error(
    run: Path, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    save(1)
    (save(2) / "meta.json").write_bytes(b"")
    assert [saved.step for saved in Checkpoints(run).steps()] == [1]
    assert re.match(r"warning: .*step-00000002/meta\.json is damaged", capsys.readouterr().err)
    with pytest.raises(DamagedError, match=r"step-00000002/meta\.json is damaged"):
        Checkpoints(run).steps(strict=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("averaged", "no checkpoint averaged in .*; there are step-00000001: run `make average`"),
        ("best", "no checkpoint best .*no checkpoint was validated"),
        ("some/folder", "checkpoint=some/folder is not the folder of a checkpoint"),
        ("../..", "is not the folder of a checkpoint"),
        ("", "no checkpoint"),
    ],
)
def test_resolve_of_an_unknown_name_lists_the_checkpoints(run: Path, save: Save, name: str, message: str) -> None:
    save(1)
    with pytest.raises(UserError, match=message):
        resolve(run, name)


@pytest.mark.parametrize(("name", "folder"), [("averaged", "averaged"), ("7", "step-7")])
def test_a_folder_of_the_same_name_elsewhere_is_not_the_checkpoint(
    run: Path, save: Save, name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    shutil.copytree(save(1), here / folder)
    monkeypatch.chdir(here)
    with pytest.raises(UserError, match=f"no checkpoint {name} in .*; there are step-00000001"):
        resolve(run, name)
    assert resolve(run, f"./{folder}") == Path(folder)


def test_resolve_without_a_run_names_make_train(run: Path) -> None:
    with pytest.raises(UserError, match=r"there are none: run `make train`"):
        resolve(run, "last")
    assert load_last_good(run) is None


@pytest.mark.parametrize("file", FILES)
def test_every_kind_of_damage_to_a_file_is_found_and_named(run: Path, save: Save, file: str) -> None:
    path = save(1) / file
    content = path.read_bytes()
    damages = [content[:-3], content[: len(content) // 2], b"", content + b"\0"]
    for place in (0, len(content) // 3, len(content) // 2, len(content) - 2):
        flipped = bytearray(content)
        flipped[place] ^= 4
        damages.append(bytes(flipped))
    for damage in damages:
        path.write_bytes(damage)
        with pytest.raises(DamagedError, match=f"step-00000001/{re.escape(file)} is damaged"):
            load(path.parent, trainer=True)
    path.unlink()
    with pytest.raises(DamagedError, match=f"step-00000001/{re.escape(file)} is damaged .it is missing"):
        load(path.parent, trainer=True)


def test_a_flipped_bit_in_meta_json_never_changes_its_meaning_unnoticed(save: Save) -> None:
    path = save(1, loss=2.5)
    meta = checkpoint_format.read_meta(path)
    content = (path / "meta.json").read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        (path / "meta.json").write_bytes(bytes(flipped))
        with suppress(UserError):
            assert checkpoint_format.read_meta(path) == meta


def test_swapped_files_and_folders_are_found(run: Path, save: Save) -> None:
    first, second = save(1), save(2)
    for file in ("model.safetensors", "trainer.pt"):
        mine, other = (first / file).read_bytes(), (second / file).read_bytes()
        (first / file).write_bytes(other)
        with pytest.raises(DamagedError, match=file):
            load(first, trainer=True)
        (first / file).write_bytes(mine)
    shutil.rmtree(first)
    second.rename(first)
    with pytest.raises(DamagedError, match=r"meta\.json is damaged .it belongs to step 2"):
        load(first)


def test_a_checkpoint_of_a_newer_format_is_an_error_and_never_skipped(
    run: Path, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(1)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_format, "FORMAT", 2)
        save(2)
    for use in (lambda: load(run / "checkpoints" / "last"), lambda: load_last_good(run), lambda: save(3)):
        with pytest.raises(UserError, match=r"format 2, .* reads formats up to 1: update nmt"):
            use()
    assert (run / "checkpoints" / "step-00000002").is_dir()


@pytest.mark.parametrize(
    "change",
    [
        {"step": "7"},
        {"files": {"../../x": "0"}},
        {"files": {}},
        {"valid": None},
        {"averaged_from": [5]},
    ],
)
def test_a_forged_meta_is_refused(save: Save, change: dict[str, Any]) -> None:
    path = save(1)
    meta = json.loads((path / "meta.json").read_text()) | change
    del meta["seal"]
    meta["seal"] = seal(meta)
    (path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(DamagedError, match=r"meta\.json is damaged"):
        load(path)


def test_no_code_is_run_from_a_trainer_state(save: Save, tmp_path: Path) -> None:
    path = save(1)
    sentinel = tmp_path / "ran"

    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(sentinel),)

    torch.save({"x": Attack()}, path / "trainer.pt")
    meta = json.loads((path / "meta.json").read_text())
    del meta["seal"]
    meta["files"]["trainer.pt"] = checksum(path / "trainer.pt")
    (path / "meta.json").write_text(json.dumps(meta | {"seal": seal(meta)}))
    with pytest.raises(UserError, match=r"cannot be loaded \(trainer.pt holds more than tensors, numbers and texts\)"):
        load(path, trainer=True)
    assert not sentinel.exists()


def test_the_newest_undamaged_checkpoint_is_used_with_a_warning(
    run: Path, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (1, 2, 3):
        save(step)
    (run / "checkpoints" / "step-00000003" / "trainer.pt").write_bytes(b"")
    (run / "checkpoints" / "step-00000002" / "meta.json").unlink()

    checkpoint = load_last_good(run)

    assert checkpoint is not None
    assert checkpoint.step == 1
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 2
    assert re.match(r"warning: .*step-00000003/trainer\.pt is damaged", warnings[0])
    assert re.match(r"warning: .*step-00000002/meta\.json is damaged .it is missing", warnings[1])

    # Training goes on behind the damaged ones, which are in its way once it has saved again.
    save(2)
    assert names(run / "checkpoints") == ["last", "step-00000001", "step-00000002"]
    (run / "checkpoints" / "step-00000001" / "config.yaml").write_text("x")
    (run / "checkpoints" / "step-00000002" / "config.yaml").write_text("x")
    with pytest.raises(UserError, match=r"all 2 checkpoints in .* are damaged"):
        load_last_good(run)


def test_weights_of_another_model_are_named(tmp_path: Path) -> None:
    expected = {"a": torch.Size([2]), "b": torch.Size([3, 4]), "c": torch.Size([1])}
    check_weights(expected, {name: torch.zeros(shape) for name, shape in expected.items()}, tmp_path)
    found = {"a": torch.zeros(2), "b": torch.zeros(5, 4), "d": torch.zeros(1)}
    with pytest.raises(UserError, match=r"checkpoint of another vocabulary or model shape") as caught:
        check_weights(expected, found, tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    for part in (str(tmp_path), "c is missing", "d is not in the model", "b is [5, 4] but the model has [3, 4]"):
        assert part in message


@pytest.fixture
def limited() -> Iterator[Callable[[int], None]]:
    """Let no file grow beyond a size: real writes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 4000])
def test_a_failed_write_keeps_the_earlier_checkpoints(
    run: Path, save: Save, limited: Callable[[int], None], size: int
) -> None:
    save(1, loss=1.0)
    big = {"moments": torch.zeros(100_000)}
    limited(size)
    with pytest.raises(UserError, match=r"cannot write .*step-00000002: "):
        save(2, trainer=big)
    limited(resource.RLIM_INFINITY)
    assert names(run / "checkpoints") == ["best", "last", "step-00000001"]
    assert load(resolve(run, "last"), trainer=True).step == 1
    save(2, trainer=big)


@pytest.mark.parametrize(
    "function", ["os.fsync", "pathlib.Path.write_bytes", "pathlib.Path.replace", "pathlib.Path.write_text"]
)
def test_a_write_error_at_any_call_keeps_the_earlier_checkpoints(
    run: Path, save: Save, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    save(1)
    with monkeypatch.context() as patch:
        patch.setattr(function, full)
        with pytest.raises(UserError, match=r"cannot write .*step-00000002: No space left on device"):
            save(2)
    assert names(run / "checkpoints") == ["last", "step-00000001"]
    assert load(resolve(run, "last"), trainer=True).step == 1


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Nothing is read-only to root, so root steps down."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


def test_a_read_only_folder_is_reported_in_one_line(ordinary_user: None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        with pytest.raises(UserError, match=r"cannot write .*step-00000001: Permission denied"):
            Checkpoints(Path(folder)).save(checkpoint_of(1))
        assert names(Path(folder)) == []


def save_without_end(run: Path, start: int) -> None:
    checkpoints = Checkpoints(run, 2, 1)
    checkpoints.remove_leftovers()
    for step in range(start, start + 100_000):
        checkpoint = checkpoint_of(step, {"w": torch.full((20_000,), float(step))}, valid={"loss": float(-step % 7)})
        checkpoints.save(replace(checkpoint, trainer={"step": step}))
        print(step, flush=True)


def last_saved_before_kill(run: Path, start: int, wait: float) -> int:
    """Kill a process that saves checkpoints, and return the last one that it reported."""
    saving = Running(save_without_end, run, start)
    wait_for(lambda: saving.output.count("\n") >= 3)
    time.sleep(wait)
    saving.send_signal(signal.SIGKILL)
    return max(int(line) for line in saving.wait().stdout.splitlines(keepends=True) if line.endswith("\n"))


def test_a_kill_at_any_moment_loses_no_saved_checkpoint(tmp_path: Path) -> None:
    run, start = tmp_path / "run", 1
    for wait in (0.0, 0.003, 0.011, 0.034):
        told = last_saved_before_kill(run, start, wait)

        checkpoint = load_last_good(run)

        assert checkpoint is not None
        assert checkpoint.step in (told, told + 1)
        assert checkpoint.trainer == {"step": checkpoint.step}
        assert torch.equal(checkpoint.weights["w"], torch.full((20_000,), float(checkpoint.step)))
        assert all(load(saved.path, trainer=True).step == saved.step for saved in Checkpoints(run).steps())
        assert load(run / "checkpoints" / "last").step in (told, told + 1)
        start = checkpoint.step + 1
    Checkpoints(run).remove_leftovers()
    Checkpoints(run, 2, 1).save(checkpoint_of(start))
    assert len(names(run / "checkpoints")) in (4, 5)  # two links, two last, one best that may be one of them


def test_only_leftovers_are_removed(run: Path, save: Save) -> None:
    save(1)
    (run / "checkpoints" / "step-00000002.partial").mkdir()
    (run / "checkpoints" / "step-00000002.partial" / "model.safetensors").write_text("half")
    (run / "checkpoints" / "last.partial").symlink_to("step-00000002")
    (run / "metrics.jsonl.partial").write_text("half")
    (run / "metrics.jsonl").write_text("")
    assert [saved.step for saved in Checkpoints(run).steps()] == [1]
    Checkpoints(run).remove_leftovers()
    assert names(run) == ["checkpoints", "metrics.jsonl"]
    assert names(run / "checkpoints") == ["last", "step-00000001"]
