"""Checkpoints: whole or not there, found by name, and never taken for right when they are not."""

import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.errors import ConfigError, UserError
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, DamagedError, load, read_meta
from nmt.runs.checkpoints import Checkpoints, load_last_good, resolve
from tests.quick_processes import Running, wait_for

FILES = ("model.safetensors", "trainer.pt", "tokenizer.model", "config.yaml", "meta.json")
Save = Callable[..., Path]


def weights_of(step: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {"embedding": torch.randn(7, 4, generator=generator), "bias": torch.randn(4, generator=generator)}


def checkpoint_of(step: int, weights: dict[str, Tensor] | None = None, **meta: Any) -> Checkpoint:
    return Checkpoint(
        meta=CheckpointMeta(step=step, **meta),
        weights=weights_of(step) if weights is None else weights,
        trainer={"epoch": 1, "moments": [torch.full((3,), float(step))]},
        tokenizer_files={"tokenizer.model": b"pieces"},
        config_text=f"seed: {step}\n",
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "outputs" / "demo"


@pytest.fixture
def save(run: Path) -> Save:
    def save(
        step: int, kept: Checkpoints | None = None, trainer: dict[str, Any] | None = None, interim: bool = False,
        only_best: bool = False, **valid: float,
    ) -> Path:  # fmt: skip
        saved = checkpoint_of(step, valid=valid, interim=interim, only_best=only_best)
        return (kept or Checkpoints(run)).save(replace(saved, trainer=trainer) if trainer else saved)

    return save


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def steps(run: Path) -> list[int]:
    return [saved.step for saved in Checkpoints(run).steps()]


def test_a_loaded_checkpoint_equals_the_saved_one(run: Path, save: Save) -> None:
    state = {"random": torch.get_rng_state(), "place": (3, 17), "adam": {0: {"step": 5.0, "mean": torch.ones(2)}}}
    path = save(1234, trainer=state, loss=1.5, bleu=float("nan"))
    assert path == run / "checkpoints" / "step-00001234"
    assert names(path) == sorted(FILES)
    checkpoint = load(path, trainer=True)
    assert (checkpoint.step, checkpoint.config_text, checkpoint.meta.valid) == (1234, "seed: 1234\n", {"loss": 1.5})
    assert all(torch.equal(checkpoint.weights[name], weight) for name, weight in weights_of(1234).items())
    assert repr(checkpoint.trainer) == repr(state)
    assert checkpoint.tokenizer_files == {"tokenizer.model": b"pieces"}
    assert load(path).trainer is None


def test_settings_that_are_gone_are_refused_with_the_name_of_their_file(run: Path) -> None:
    path = Checkpoints(run).save(replace(checkpoint_of(1), config_text="training:\n  ema: 0.9\n"))
    with pytest.raises(ConfigError, match=f"{path}/config.yaml: there is no setting training.ema"):
        _ = load(path).config


def test_tied_and_transposed_weights_are_loaded_unchanged(run: Path) -> None:
    tied = torch.randn(5, 3)
    weights = {"embedding": tied, "output": tied, "transposed": tied.t(), "empty": torch.zeros(0)}
    loaded = load(Checkpoints(run).save(checkpoint_of(1, weights))).weights
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())


@pytest.mark.parametrize(
    ("keep_last", "keep_best", "kept", "best"),
    [(2, 1, [3, 5, 6], 3), (1, 3, [1, 3, 4, 6], 3), (1, 0, [6], 6)],
)
def test_the_last_and_the_best_are_kept_and_linked(
    run: Path, save: Save, tmp_path: Path, keep_last: int, keep_best: int, kept: list[int], best: int
) -> None:
    for step, loss in {1: 4.0, 2: 9.0, 3: 3.0, 4: 3.0, 5: 8.0, 6: 7.0}.items():
        save(step, Checkpoints(run, keep_last, keep_best), loss=loss)
    assert names(run / "checkpoints") == sorted(["best", "last", *(f"step-{step:08d}" for step in kept)])
    assert [resolve(run, name).name for name in ("last", "best")] == ["step-00000006", f"step-{best:08d}"]
    run.rename(tmp_path / "moved")
    assert [load(tmp_path / "moved/checkpoints" / name).step for name in ("last", "best")] == [6, best]


def test_links_that_a_copy_has_replaced_by_folders_are_links_again(run: Path, save: Save, tmp_path: Path) -> None:
    save(1, loss=1.0)
    shutil.copytree(run, tmp_path / "copy")  # follows links
    path = Checkpoints(tmp_path / "copy").save(checkpoint_of(2))
    assert [load(path.with_name(name)).step for name in ("last", "best")] == [2, 1]


def test_no_link_leads_to_a_checkpoint_that_is_gone(run: Path, save: Save) -> None:
    save(1, Checkpoints(run, keep_last=1), loss=1.0)
    save(2, Checkpoints(run, keep_last=1))
    assert names(run / "checkpoints") == ["last", "step-00000002"]


def test_checkpoints_that_are_not_scheduled_take_no_place_of_the_last(run: Path, save: Save) -> None:
    for step in range(25, 325, 25):
        save(step, Checkpoints(run, keep_last=3, keep_best=1), only_best=step % 100 > 0, loss=1000 / step)
    assert steps(run) == [100, 200, 300]
    save(310, Checkpoints(run, keep_last=3, keep_best=1), interim=True, loss=1.0)
    assert steps(run) == [100, 200, 300, 310]


def test_every_kind_of_name_is_found(
    run: Path, save: Save, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"no checkpoint averaged in .*; there are none: run `make train`"):
        resolve(run, "averaged")
    first, second, third = save(1000, loss=1.0), save(2000, loss=2.0), save(100_000_000)
    expected = {"best": first, "last": third, "step-00001000": first, "1000": first, "step-2000": second}
    assert {name: resolve(run, name) for name in expected} == expected
    assert resolve(Path("another"), str(first)) == first
    (run / "checkpoints" / "last").unlink()  # as after a kill between the rename and the links
    assert resolve(run, "last") == third
    for name in ("averaged", "step-7"):
        shutil.copytree(first, tmp_path / "here" / name)
    monkeypatch.chdir(tmp_path / "here")  # a folder of the same name elsewhere is not the checkpoint
    for name in ("averaged", "7", "some/folder", "../..", ""):
        with pytest.raises(UserError, match=f"no checkpoint {name} in .*; there are step-00001000, .*, last, best: "):
            resolve(run, name)
    shutil.copytree(first, run / "checkpoints" / "averaged")
    assert capsys.readouterr().err == ""
    assert resolve(run, "averaged") == run / "checkpoints" / "averaged"
    assert "averaged is of step 1000, training is at step 100000000: `make average` updates" in capsys.readouterr().err


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
    with pytest.raises(DamagedError, match=f"step-00000001/{re.escape(file)} is damaged .No such file"):
        load(path.parent, trainer=True)
    shutil.rmtree(path.parent)
    with pytest.raises(DamagedError, match="step-00000001 is gone: training deletes old checkpoints"):
        load(path.parent, trainer=True)


def test_a_flipped_bit_in_meta_json_never_changes_its_meaning_unnoticed(save: Save) -> None:
    path = save(1, loss=2.5)
    meta, content = read_meta(path), (path / "meta.json").read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        (path / "meta.json").write_bytes(bytes(flipped))
        with suppress(UserError):
            assert read_meta(path) == meta


def test_the_newest_undamaged_checkpoint_is_used_with_a_warning(
    run: Path, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_last_good(run) is None
    for step in (1, 2, 3):
        save(step)
    (run / "checkpoints" / "step-00000003" / "trainer.pt").write_bytes(b"")
    (run / "checkpoints" / "step-00000002" / "meta.json").unlink()
    checkpoint = load_last_good(run)
    assert checkpoint is not None
    assert checkpoint.step == 1
    warnings = capsys.readouterr().err.splitlines()
    assert [re.sub(r"warning: .*/(.*/.*) is damaged.*", r"\1", line) for line in warnings] == [
        "step-00000003/trainer.pt",
        "step-00000002/meta.json",
    ]
    with pytest.raises(DamagedError, match=r"step-00000002/meta\.json is damaged"):
        Checkpoints(run).steps(strict=True)
    # Training goes on behind the damaged ones, which are in its way once it has saved again.
    save(2)
    assert names(run / "checkpoints") == ["last", "step-00000001", "step-00000002"]
    for step in (1, 2):
        (run / "checkpoints" / f"step-{step:08d}" / "config.yaml").write_text("x")
    with pytest.raises(UserError, match=r"all 2 checkpoints in .* are damaged"):
        load_last_good(run)


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
    for wait in (0.0, 0.011):
        told = last_saved_before_kill(run, start, wait)
        checkpoint = load_last_good(run)
        assert checkpoint is not None
        assert checkpoint.step in (told, told + 1)
        assert checkpoint.trainer == {"step": checkpoint.step}
        assert torch.equal(checkpoint.weights["w"], torch.full((20_000,), float(checkpoint.step)))
        assert all(load(saved.path, trainer=True).step == saved.step for saved in Checkpoints(run).steps())
        assert load(run / "checkpoints" / "last").step in (told, told + 1)
        start = checkpoint.step + 1
    averaged, leftover = (run / "checkpoints" / f"{name}.partial" for name in ("averaged", "step-00000001"))
    averaged.mkdir()  # another command may be writing it
    leftover.mkdir(exist_ok=True)
    Checkpoints(run).remove_leftovers()
    assert not leftover.exists()
    averaged.rmdir()
    Checkpoints(run, 2, 1).save(checkpoint_of(start))
    assert len(names(run / "checkpoints")) in (4, 5)  # two links, two last, one best that may be one of them
