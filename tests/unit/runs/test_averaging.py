"""Averaging: the mean that numpy gives, over the checkpoints that were asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.commands import average as command
from nmt.commands.average import average, candidates, last_checkpoints
from nmt.config.training import AveragingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.errors import UserError
from nmt.runs.checkpoint import CheckpointMeta, DamagedError, load
from nmt.runs.checkpoints import Checkpoints, load_last_good, resolve
from tests.unit.runs.test_checkpoints import checkpoint_of, weights_of


def config_of(folder: Path, last: int) -> Config:
    return Config(name="table3/a1", paths=PathsConfig(outputs=str(folder)), averaging=AveragingConfig(last=last))


def save(folder: Path, step: int, weights: dict[str, Tensor] | None = None, **meta: Any) -> Path:
    return Checkpoints(config_of(folder, 0).run_folder).save(checkpoint_of(step, weights, **meta))


def steps(saved: Any) -> list[int]:
    return [each.step for each in saved]


def saved_in(folder: Path) -> list[CheckpointMeta]:
    return Checkpoints(config_of(folder, 0).run_folder).steps()


def test_the_average_is_the_mean(tmp_path: Path) -> None:
    many = [1, 20, 300, 4000, 50_000, 600_000, 7_000_000]
    for step in many:
        save(tmp_path, step)
    averaged = average(saved_in(tmp_path)).weights
    assert averaged.keys() == {"embedding", "bias"}
    for name, weight in averaged.items():
        assert weight.dtype == torch.float32
        exact = np.mean([weights_of(step)[name].numpy().astype(np.float64) for step in many], axis=0)
        np.testing.assert_array_equal(weight.numpy(), exact.astype(np.float32))


def test_training_never_resumes_from_averaged_weights(tmp_path: Path) -> None:
    paths, config = [save(tmp_path, step) for step in (100, 200, 300)], config_of(tmp_path, 4)
    command.run(config)
    averaged = load(resolve(config.run_folder, "averaged"))
    assert averaged.step == averaged.meta.newest_step == 300
    assert averaged.meta.averaged_from == ["step-00000100", "step-00000200", "step-00000300"]
    assert averaged.tokenizer_files == {"tokenizer.model": b"pieces"}
    with pytest.raises(UserError, match="contains only weights"):
        load(averaged.path, trainer=True)
    resumed = load_last_good(config.run_folder)
    assert resumed is not None
    assert resumed.path == paths[2]


@pytest.mark.parametrize(
    ("saved", "count", "chosen"),
    [
        ({99_999_999: {}, 100_000_000: {}, 1_000_000_000: {}}, 2, [100_000_000, 1_000_000_000]),
        ({1000: {}, 1100: {}, 1213: {"interim": True}}, 2, [1000, 1100]),
        ({1000: {}, 1050: {"only_best": True}, 1100: {}}, 9, [1000, 1100]),
        ({13: {"interim": True}}, 5, [13]),
    ],
)
def test_the_last_are_those_at_equal_distances(
    tmp_path: Path, saved: dict[int, dict[str, Any]], count: int, chosen: list[int]
) -> None:
    for step, meta in saved.items():
        save(tmp_path, step, **meta)
    assert steps(last_checkpoints(saved_in(tmp_path), count)) == chosen


def test_candidates_are_the_last_one_and_the_last_and_the_best(tmp_path: Path) -> None:
    save(tmp_path, 1)
    assert {name: steps(each) for name, each in candidates(saved_in(tmp_path), 5, 5).items()} == {
        "the last checkpoint": [1]
    }
    for step, loss in ((1000, 3.0), (1100, 1.0), (1200, 2.0)):
        save(tmp_path, step, valid={"loss": loss})
    save(tmp_path, 1213, interim=True, valid={"loss": 0.5})
    assert {name: steps(each) for name, each in candidates(saved_in(tmp_path), 3, 2).items()} == {
        "the last checkpoint": [1213],
        "the last 3": [1000, 1100, 1200],
        "the best 2": [1100, 1200],
    }


def test_bad_checkpoints_are_never_averaged(tmp_path: Path) -> None:
    config = config_of(tmp_path, 2)
    with pytest.raises(UserError, match=r"no checkpoints in .*: run `make train`"):
        command.run(config)
    save(tmp_path, 1)
    save(tmp_path, 2, {"embedding": torch.zeros(7, 5), "bias": torch.zeros(4)})
    with pytest.raises(UserError, match=r"step-00000002 is .*embedding is \[7, 5\], not \[7, 4\]"):
        command.run(config)
    weights = save(tmp_path, 2) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(DamagedError, match=r"step-00000002/model\.safetensors is damaged"):
        command.run(config)
    (save(tmp_path, 3) / "meta.json").write_text("{")  # without it, another one would count as the last
    with pytest.raises(DamagedError, match=r"step-00000003/meta\.json is damaged .*: delete .*step-00000003 "):
        command.run(config)
    assert not (config.run_folder / "checkpoints" / "averaged").exists()
