"""Every export format declares the settings that it can express and refuses all others by name."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nmt.config.choices import CHOICES
from nmt.config.schema import ModelConfig
from nmt.errors import ConfigError, UserError
from nmt.feature import Choice
from nmt.features.exports.exporter import SIZES_AND_TRAINING, check_expressible
from nmt.features.exports.record import ExportRecord, VerificationRecord, read_export_record
from nmt.features.exports.registry import EXPORTERS
from nmt.features.exports.settings import ExportConfig
from nmt.runs.checkpoint_record import CheckpointRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterModelConfig(ModelConfig):
    """The settings of a later version, whose model has more options."""

    experts: int = 1
    gating: str = "none"


def test_the_settings_accept_exactly_the_registered_targets() -> None:
    for target in EXPORTERS:
        assert ExportConfig(target=target).target == target
    with pytest.raises(ConfigError, match=", ".join(EXPORTERS)):
        ExportConfig(target="marain")


def test_an_exporter_of_an_extension_may_have_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHOICES["export.target"], "plain", Choice("extension:Plain", "another program"))
    monkeypatch.setitem(CHOICES["export.target"], "small", Choice("extension:Small", "another program", ("int8",)))
    assert ExportConfig(target="small", quantization="int8").quantization == "int8"
    with pytest.raises(ConfigError, match=r"needs export.target=.* or small$"):
        ExportConfig(target="plain", quantization="int8")


@pytest.mark.parametrize("target", ["argos", "ctranslate2", "huggingface", "onnx", "web"])
@pytest.mark.parametrize(("option", "value"), [("gating", "softmax"), ("experts", 2)])
def test_an_option_that_a_format_does_not_declare_is_refused(target: str, option: str, value: object) -> None:
    exporter = EXPORTERS[target]
    exporter.check(LaterModelConfig())
    with pytest.raises(UserError, match=rf"^export.target={target} cannot express model.{option}={value}, only \S+: "):
        exporter.check(LaterModelConfig(**{option: value}))  # type: ignore[arg-type]


def test_a_new_value_of_a_declared_setting_is_refused() -> None:
    with pytest.raises(UserError, match=r"cannot express model.norm=rms, only layer or batch: choose another"):
        check_expressible("x", ModelConfig(norm="rms"), {**SIZES_AND_TRAINING, "norm": ("layer", "batch")})


def test_an_export_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"")
    record = ExportRecord(
        nmt="1", target="ctranslate2", quantization="int8", languages=("en", "de"), positions=9,
        checkpoint=CheckpointRecord("averaged", 7, "0"), files=("model.bin",),
        verified=VerificationRecord(4, 3, 0.5, {"model_bleu": 1.0}, "3 of 4"),
    )  # fmt: skip
    record.write(tmp_path)
    read = read_export_record(tmp_path)
    assert read.sha256 == {"model.bin": hashlib.sha256(b"").hexdigest()}
    assert replace(read, sha256={}) == record
    assert record.paths(tmp_path) == [tmp_path / "export.json", tmp_path / "model.bin"]
