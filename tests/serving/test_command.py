"""Models that `nmt serve` loads."""

from pathlib import Path

import pytest
import torch

from nmt.cli import composed_settings
from nmt.config.keys import with_values
from nmt.config.tree import Config
from nmt.errors import ConfigError
from nmt.model.backends.chosen import backend
from nmt.model.kernels.c.library import use_operations

pytest.importorskip("starlette", reason="needs the extra serve")
from nmt.config.commands import ServeConfig
from nmt.serving.process import ModelProcess
from nmt.serving.worker import load_model
from tests.unit.tiny_run import write_tiny_run


@pytest.mark.parametrize(("entry", "name", "folder"), [
    ("outputs/demo", "demo", "outputs/demo"), ("small:outputs/demo", "small", "outputs/demo"),
])  # fmt: skip
def test_a_model_to_serve_is_a_folder(entry: str, name: str, folder: str) -> None:
    settings = ServeConfig(models=[entry])
    assert settings.named_folders == [(name, folder)]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["checkpoint=last"], "checkpoint"),
        (["engine=torch", "decoding.beam=2"], "engine, decoding.beam"),
        (["decoding=greedy"], "decoding"),
    ],
    ids=str,
)
def test_settings_of_a_model_are_refused_for_models_that_have_their_own(given: list[str], named: str) -> None:
    composed_settings([*given, "name=tiny"])
    composed_settings(["experiment=multi30k", "runtime.device=cpu", "serve.models=[tiny:folder]"])
    with pytest.raises(ConfigError, match=f"^serve.models and {named}: each of these models has .* leave out"):
        composed_settings([*given, "serve.models=[tiny:folder]"])


def test_a_link_is_followed_once_so_that_a_later_process_has_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "model-1").mkdir()
    (tmp_path / "model").symlink_to("model-1")
    process = ModelProcess("tiny", Config(), str(tmp_path / "model"))
    (tmp_path / "model").unlink()
    assert process.folder == str((tmp_path / "model-1").resolve())


def test_models_of_folders_are_loaded_with_or_without_operations_in_c_as_the_settings_say(tmp_path: Path) -> None:
    write_tiny_run(tmp_path / "tiny")
    there = use_operations({torch.float32})
    runtime = {"runtime.device": "cpu", "runtime.precision": "fp32", "runtime.threads": 1}
    for wanted in (True, False):
        config = with_values(Config(), {**runtime, "runtime.kernels": wanted})
        load_model(config, str(tmp_path / "tiny"))
        assert (backend().name == "cpu") == (wanted and there)
