"""engine=int8: the model itself with rounded weights, and when engine=auto uses it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.keys import with_values
from nmt.config.schema import Config, DataConfig, DecodingConfig, PathsConfig, RuntimeConfig
from nmt.decoding.engines import choose_engine
from nmt.decoding.load_engine import load_engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.exports import choose_engine as choosing
from nmt.features.exports import first_use
from nmt.features.exports.int8_engine import Int8Engine, compare_with_model, load_in_int8
from nmt.features.exports.record import VerificationRecord
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
    """Write a run of a model that copies, and a development set; return its settings."""
    write_tiny_run(tmp_path / "tiny", taught)
    paths = PathsConfig(data=str(tmp_path / "data"), outputs=str(tmp_path))
    config = Config(name="tiny", paths=paths, decoding=DecodingConfig(beam=2, extra_length=4), data=DataConfig())
    config.data_folder.mkdir(parents=True)
    for language in ("en", "de"):
        (config.data_folder / f"valid.{language}").write_text("".join(f"{line}\n" for line in LINES))
    return config


@pytest.fixture
def _operations() -> None:
    if not library.use_operations(True, only=torch.float32):
        pytest.skip("needs a C compiler")
    library.use_operations(False)


@pytest.mark.usefixtures("_operations")
def test_the_model_in_int8_translates_like_the_model(config: Config) -> None:
    engine = load_engine(replace(config, engine="int8"), CPU).engine
    assert isinstance(engine, Int8Engine)
    exact = load_engine(replace(config, engine="torch"), CPU).engine
    assert isinstance(exact, TorchEngine)
    assert [each.text for each in engine.translate(LINES)] == [each.text for each in exact.translate(LINES)] == LINES
    scored = zip(engine.score(LINES, LINES), exact.score(LINES, LINES), strict=True)
    differences = [abs(one.log_probability - other.log_probability) for one, other in scored]
    assert 0 < max(differences) < 0.1
    compared = compare_with_model(with_values(config, {"export.quantization": "int8"}), torch.float32)
    assert (compared.sentences, compared.same) == (len(LINES), len(LINES))
    assert compared.quality is not None
    assert compared.quality["export_bleu"] == compared.quality["model_bleu"] == pytest.approx(100)
    assert compared.speedup


def test_a_gpu_or_a_missing_compiler_is_refused_in_one_line(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="engine=int8 translates on CPUs only, not on cuda: use engine=torch"):
        load_in_int8(config, CPU._replace(device=torch.device("cuda")))
    without = replace(config, runtime=RuntimeConfig(c_operations=False))
    for settings, compiler in ((config, False), (without, True)):
        monkeypatch.setattr(
            "nmt.features.exports.int8_engine.use_operations", lambda wanted, only, there=compiler: there
        )
        with pytest.raises(UserError, match="install a C compiler"):
            load_in_int8(settings, CPU)


class FakeComparison:
    """Says that int8 loses some BLEU and is faster, or refuses the model."""

    def __init__(self) -> None:
        self.loss, self.speedup, self.refusal, self.inputs = 0.1, 3.0, "", list[str]()

    def __call__(self, config: Config, precision: torch.dtype) -> VerificationRecord:
        self.inputs.append(config.input)
        if self.refusal:
            raise UserError(self.refusal)
        quality = {"model_bleu": 30.0, "export_bleu": 30.0 - self.loss}
        return VerificationRecord(5, 4, 0.01, quality, "as compared", self.speedup)


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> FakeComparison:
    """Replace the comparison, on a machine with a compiler and without CTranslate2."""
    fake = FakeComparison()
    monkeypatch.setattr(first_use, "compare_with_model", fake)
    monkeypatch.setattr(first_use, "has_operations", lambda config: True)
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)
    return fake


def test_the_first_use_compares_once_and_then_translates_in_int8(
    config: Config, comparison: FakeComparison, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = replace(config, input="text of the user")
    assert [choose_engine(asked, CPU).engine for _ in range(2)] == ["int8", "int8"]
    assert comparison.inputs == ["-"]  # compared on the development set, not on the text of the user
    said = capsys.readouterr().err
    assert said.count("comparing the model in int8 with itself once") == 1
    assert said.count("translating in int8 (as compared); engine=torch for the model as it is") == 2


def test_int8_shows_details_and_an_export_does_not(config: Config, comparison: FakeComparison) -> None:
    assert choose_engine(config, CPU, with_details=True).engine == "int8"
    comparison.refusal = "not asked again"
    assert choose_engine(config, CPU, with_details=True).engine == "int8"


@pytest.mark.parametrize(("name", "value"), [("loss", 0.21), ("speedup", 0.9), ("refusal", "the model is odd")])
def test_the_model_translates_if_int8_is_worse_or_slower_or_impossible(
    config: Config, comparison: FakeComparison, name: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    setattr(comparison, name, value)
    assert [choose_engine(config, CPU).engine for _ in range(2)] == ["torch", "torch"]
    assert len(comparison.inputs) == 1
    assert capsys.readouterr().err.count("translating with the model") == 1


def test_other_weights_are_compared_again(config: Config, comparison: FakeComparison, tmp_path: Path) -> None:
    choose_engine(config, CPU)
    write_tiny_run(tmp_path / "tiny")
    choose_engine(config, CPU)
    assert len(comparison.inputs) == 2


@pytest.mark.usefixtures("comparison")
def test_int8_is_not_chosen_for_a_gpu_or_an_ensemble_or_without_references_or_permission(config: Config) -> None:
    assert choose_engine(config, CPU._replace(device=torch.device("cuda"))).engine == "torch"
    ensemble = replace(config, decoding=DecodingConfig(ensemble=["last"]))
    for settings in (ensemble, with_values(config, {"export.on_first_use": False}), replace(config, engine="torch")):
        assert choose_engine(settings, CPU).engine == "torch"
    (config.data_folder / "valid.de").unlink()
    assert choose_engine(config, CPU).engine == "torch"


def test_a_comparison_that_is_remembered_is_not_used_without_operations_in_c_or_permission(
    config: Config, comparison: FakeComparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_engine(config, CPU).engine == "int8"
    assert choose_engine(with_values(config, {"export.on_first_use": False}), CPU).engine == "torch"
    monkeypatch.setattr(first_use, "has_operations", lambda config: False)  # as on another machine
    assert choose_engine(config, CPU).engine == "torch"
    monkeypatch.setattr(first_use, "has_operations", lambda config: config.runtime.c_operations)
    assert choose_engine(with_values(config, {"runtime.c_operations": False}), CPU).engine == "torch"
    (config.data_folder / "valid.de").unlink()
    assert choose_engine(config, CPU).engine == "int8"  # needs no references any more
    assert len(comparison.inputs) == 1
