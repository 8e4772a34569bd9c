"""What `nmt describe` prints."""

import json

import pytest

from nmt.commands.describe import describe, run
from nmt.config.compose import compose
from nmt.errors import ConfigError


def test_base_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    run(compose(["output=json"]))
    figures = json.loads(capsys.readouterr().out)
    assert figures["parameters"] == {
        "total": 63_082_496,
        "embedding": 37_000 * 512,
        "encoder": 18_914_304,
        "decoder": 25_224_192,
    }
    assert figures["flops_per_step"] == pytest.approx(9.5e12, rel=0.01)
    assert (figures["tokens_per_step"], figures["global_batch"], figures["steps"]) == (50_000, 25_000, 100_000)
    assert (figures["devices"], figures["device_batch"], figures["accumulation"]) == (8, 3125, 1)


@pytest.mark.parametrize(
    ("devices", "device_tokens", "expected"),
    [(1, 0, (1, 25_000)), (1, 4096, (7, 3572)), (8, 4096, (1, 3125)), (2, 12_500, (1, 12_500)), (3, 5000, (2, 4167))],
)
def test_parts_of_a_batch(devices: int, device_tokens: int, expected: tuple[int, int]) -> None:
    figures = describe(compose([f"training.device_tokens={device_tokens}"]), devices)
    assert (figures["accumulation"], figures["device_batch"]) == expected
    assert devices * figures["accumulation"] * figures["device_batch"] >= 25_000
    assert not device_tokens or figures["device_batch"] <= device_tokens


def test_big_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    run(compose(["experiment=wmt14_en_de_big", "runtime=cpu"]))
    text = capsys.readouterr().out
    assert "214,2" in text
    assert "300,000 steps" in text


@pytest.mark.parametrize("device", ["v100", "t4"])
def test_a_device_without_bf16_is_described_in_fp32(device: str) -> None:
    found = describe(compose([f"device={device}"]), 1)
    explicit = describe(compose([f"device={device}", "runtime.precision=fp32"]), 1)
    bf16, fp32 = (describe(compose(["device=a100", f"runtime.precision={each}"]), 1) for each in ("bf16", "fp32"))
    assert found == explicit
    assert found["estimate"]["assumptions"]["precision"] == "fp32"
    assert found["memory"] == fp32["memory"]
    assert fp32["memory"]["activations"] > 1.5 * bf16["memory"]["activations"]


@pytest.mark.parametrize(("steps", "told"), [(3999, True), (4000, False)])
def test_a_warmup_longer_than_training_is_told(steps: int, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    run(compose([f"training.steps={steps}", "runtime=cpu"]))
    assert ("warning: training.warmup_steps=4000 is above" in capsys.readouterr().out) == told


def test_another_output_is_refused() -> None:
    with pytest.raises(ConfigError, match="output=jsn is nothing that describe writes"):
        run(compose(["output=jsn"]))
