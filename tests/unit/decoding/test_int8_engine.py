"""engine=int8: the model itself with rounded weights."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.decoding.load import load_engine, load_in_int8
from nmt.errors import UserError
from nmt.model.interface import TranslationModel
from nmt.model.kernels.c import library
from tests.unit.small_models import LINES, make_model, make_tokenizer, teach
from tests.unit.tiny_run import write_tiny_run

CPU = Machine(torch.device("cpu"), torch.float32)


@pytest.fixture(scope="module")
def taught() -> TranslationModel:
    """Return a model that copies its lines."""
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, positions="sinusoidal", d_model=64, d_ff=64, norm_placement="pre")
    return teach(model.train(), tokenizer, 120).eval()


@pytest.fixture
def config(tmp_path: Path, taught: TranslationModel) -> Config:
    """Write a run of a model that copies; return its settings."""
    write_tiny_run(tmp_path / "tiny", taught)
    paths = PathsConfig(data=str(tmp_path / "data"), outputs=str(tmp_path))
    return Config(name="tiny", paths=paths, decoding=DecodingConfig(beam=2, extra_length=4), data=DataConfig())


@pytest.fixture
def _operations() -> None:
    if not library.use_operations({torch.float32}):
        pytest.skip("needs a C compiler")


@pytest.mark.usefixtures("_operations")
def test_the_model_in_int8_translates_like_the_model(config: Config) -> None:
    rounded, exact = (load_engine(replace(config, engine=name), CPU).engine for name in ("int8", "torch"))
    assert (rounded.name, exact.name) == ("int8", "torch")
    found, expected = ([each.candidates[0] for each in engine.translate(LINES)] for engine in (rounded, exact))
    assert [each.text for each in found] == [each.text for each in expected] == LINES
    assert 0 < max(abs(one.score - other.score) for one, other in zip(found, expected, strict=True)) < 0.1


def test_a_gpu_or_a_missing_compiler_is_refused_in_one_line(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_library", lambda _: None)
    for kernels in (True, False):
        with pytest.raises(UserError, match="install a C compiler"):
            load_in_int8(replace(config, runtime=RuntimeConfig(kernels=kernels)), CPU)
