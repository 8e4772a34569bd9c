"""Averaging: the mean that numpy gives, over the checkpoints that were asked for."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

from nmt.commands import average as stage
from nmt.config.training import AveragingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.errors import UserError
from nmt.runs.averaging import average, candidates, last_checkpoints, write_averaged
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, DamagedError, load
from nmt.runs.checkpoints import Checkpoints, load_last_good, resolve

SETTINGS = asdict(Config())


def weights_of(step: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {"matrix": torch.randn(30, 20, generator=generator), "bias": torch.randn(20, generator=generator) * 1e-3}


def save(
    run: Path,
    step: int,
    weights: dict[str, Tensor] | None = None,
    tokenizer: bytes = b"pieces",
    model: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    interim: bool = False,
    only_best: bool = False,
    **valid: float,
) -> Path:
    checkpoint = Checkpoint(
        meta=CheckpointMeta(step=step, valid=valid, interim=interim, only_best=only_best),
        weights=weights_of(step) if weights is None else weights,
        trainer={},
        tokenizer_files={"tokenizer.model": tokenizer},
        config_text=yaml.safe_dump(SETTINGS | {"model": SETTINGS["model"] | (model or {})} | (settings or {})),
    )
    return Checkpoints(run).save(checkpoint)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "demo"


def numpy_mean(steps: list[int], name: str) -> Any:
    return np.mean([weights_of(step)[name].numpy().astype(np.float64) for step in steps], axis=0).astype(np.float32)


def test_the_average_is_the_mean(run: Path) -> None:
    steps = [1, 20, 300, 4000, 50_000, 600_000, 7_000_000]
    averaged = average([save(run, step) for step in steps])
    assert averaged.keys() == {"matrix", "bias"}
    for name, weight in averaged.items():
        assert weight.dtype == torch.float32
        np.testing.assert_array_equal(weight.numpy(), numpy_mean(steps, name))


def test_the_averaged_checkpoint_loads_as_any_other(run: Path) -> None:
    paths = [save(run, step) for step in (100, 200, 300)]
    folder = write_averaged(run, paths[::-1], 300)
    assert resolve(run, "averaged") == folder == run / "checkpoints" / "averaged"
    checkpoint = load(folder)
    np.testing.assert_array_equal(checkpoint.weights["matrix"].numpy(), numpy_mean([300, 200, 100], "matrix"))
    assert checkpoint.step == 300
    assert checkpoint.meta.averaged_from == ["step-00000300", "step-00000200", "step-00000100"]
    assert checkpoint.tokenizer_files == {"tokenizer.model": b"pieces"}
    assert checkpoint.config_text == load(paths[2]).config_text
    with pytest.raises(UserError, match="contains only weights"):
        load(folder, trainer=True)
    resumed = load_last_good(run)
    assert resumed is not None
    assert resumed.path == paths[2]
    assert [saved.step for saved in Checkpoints(run).steps()] == [100, 200, 300]
    write_averaged(run, paths[:2], 300)
    assert load(folder).step == 200


def last_steps(run: Path, count: int) -> list[int]:
    return [load(path).step for path in last_checkpoints(Checkpoints(run), count)]


def found_steps(run: Path, keep_last: int, keep_best: int) -> dict[str, list[int]]:
    found = candidates(Checkpoints(run), keep_last, keep_best)
    return {name: [load(path).step for path in paths] for name, paths in found.items()}


def test_the_last_are_those_of_the_highest_steps_and_the_best_those_of_the_best_scores(run: Path) -> None:
    bleu = {99_999_999: 9.0, 100_000_000: 30.0, 200_000_000: 20.0, 1_000_000_000: 25.0}
    for step, score in bleu.items():
        save(run, step, loss=score, bleu=score)
    assert last_steps(run, 2) == [200_000_000, 1_000_000_000]
    assert last_steps(run, 3) == [100_000_000, 200_000_000, 1_000_000_000]
    assert found_steps(run, 2, 2)["the best 2"] == [99_999_999, 200_000_000]


def test_an_interim_checkpoint_is_in_no_average(run: Path) -> None:
    for step, loss in ((1000, 3.0), (1100, 1.0), (1200, 2.0)):
        save(run, step, loss=loss)
    save(run, 1213, interim=True, loss=0.5)
    assert last_steps(run, 2) == [1100, 1200]
    assert found_steps(run, 3, 1) == {
        "the last checkpoint": [1213],
        "the last 3": [1000, 1100, 1200],
        "the best 1": [1100],
    }


def test_the_best_between_scheduled_checkpoints_is_not_among_the_last(run: Path) -> None:
    for step, loss in ((1000, 3.0), (1050, 1.0), (1100, 2.0)):
        save(run, step, only_best=step == 1050, loss=loss)
    assert last_steps(run, 2) == last_steps(run, 9) == [1000, 1100]
    assert found_steps(run, 3, 2) == {
        "the last checkpoint": [1100],
        "the last 2": [1000, 1100],
        "the best 2": [1050, 1100],
    }


def test_a_checkpoint_kept_as_one_of_the_best_is_not_among_the_last(run: Path) -> None:
    settings = {"training": SETTINGS["training"] | {"keep_last": 2}, "averaging": SETTINGS["averaging"] | {"last": 2}}
    for step in (100, 300, 400):  # 200 is gone, because only two are kept
        save(run, step, settings=settings, loss=float(step))
    assert last_steps(run, 3) == [300, 400]
    assert list(found_steps(run, 5, 1).values()) == [[400], [300, 400], [100]]


@pytest.mark.parametrize("last", [1, 5])
def test_a_run_with_only_an_interim_checkpoint_uses_it(
    tmp_path: Path, last: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config(name="short", paths=PathsConfig(outputs=str(tmp_path)), averaging=AveragingConfig(last=last))
    save(config.run_folder, 13, interim=True)
    stage.run(config)
    assert "averaged step-00000013 into" in capsys.readouterr().out
    assert load(config.run_folder / "checkpoints" / "averaged").meta.averaged_from == ["step-00000013"]


def test_candidates_of_the_same_checkpoints_are_one(run: Path) -> None:
    save(run, 1)
    assert found_steps(run, 5, 5) == {"the last checkpoint": [1]}
    save(run, 2)
    assert found_steps(run, 5, 5) == {"the last checkpoint": [2], "the last 2": [1, 2]}
    save(run, 3, loss=1.0)
    assert found_steps(run, 2, 2) == {"the last checkpoint": [3], "the last 2": [2, 3]}


def test_a_run_without_checkpoints_is_an_error(run: Path) -> None:
    with pytest.raises(UserError, match=r"no checkpoints in .*: run `make train`"):
        last_checkpoints(Checkpoints(run), 2)
    with pytest.raises(UserError, match=r"no checkpoints in .*: run `make train`"):
        candidates(Checkpoints(run), 5, 5)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"weights": {"matrix": torch.zeros(30, 21), "bias": torch.zeros(20)}}, r"matrix is \[30, 21\] but"),
        ({"weights": {"matrix": torch.zeros(30, 20)}}, r"bias is missing"),
        ({"weights": weights_of(1) | {"more": torch.zeros(1)}}, r"more is not in the model"),
        ({"tokenizer": b"other pieces"}, r"their tokenizers differ"),
        ({"model": {"heads": 16, "norm_placement": "pre"}}, r"model.heads is 16, not 8, model.norm_placement is pre"),
    ],
)
def test_checkpoints_that_do_not_match_are_not_averaged(run: Path, other: dict[str, Any], message: str) -> None:
    paths = [save(run, 1), save(run, 2), save(run, 3, **other)]
    with pytest.raises(UserError, match=message) as caught:
        write_averaged(run, paths, 3)
    assert "step-00000003" in str(caught.value)
    assert not (run / "checkpoints" / "averaged").exists()


def test_a_damaged_checkpoint_is_never_averaged(run: Path) -> None:
    paths = [save(run, 1), save(run, 2)]
    content = bytearray((paths[1] / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (paths[1] / "model.safetensors").write_bytes(bytes(content))
    with pytest.raises(DamagedError, match=r"step-00000002/model\.safetensors is damaged"):
        average(paths)


def test_a_damaged_checkpoint_is_not_replaced_by_another(run: Path) -> None:
    folders = [save(run, step, loss=1.0 / step) for step in (1, 2, 3)]
    (folders[-1] / "meta.json").write_text("{")
    with pytest.raises(DamagedError, match=f"{folders[-1].name}/meta.json is damaged .*: delete {folders[-1]}"):
        last_checkpoints(Checkpoints(run), 2)


def test_a_run_that_stopped_early_is_averaged_over_its_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config(name="table3/a1", paths=PathsConfig(outputs=str(tmp_path)), averaging=AveragingConfig(last=3))
    config.run_folder.parent.mkdir()
    save(config.run_folder, 1)
    save(config.run_folder, 2)
    stage.run(config)
    folder = config.run_folder / "checkpoints" / "averaged"
    assert capsys.readouterr().out == (
        f"averaged step-00000001 to step-00000002 into {folder}\n"
        "  averaging.last=3 asks for more, but the run has no others\n"
    )
    np.testing.assert_array_equal(load(folder).weights["bias"].numpy(), numpy_mean([1, 2], "bias"))
