"""The figures of `nmt describe`, as text and as JSON."""

import json
from pathlib import Path

import pytest

from nmt.commands.describe import as_text, describe, run
from nmt.config.compose import compose
from nmt.data import make_tokenizer
from nmt.data.prepare import prepare
from nmt.errors import ConfigError
from tests.integration.toy import write_pairs
from tests.unit.data.corpus import text_pairs


def test_json_has_the_figures_of_the_base_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert figures["tokens_per_step"] == 50_000
    assert (figures["global_batch"], figures["steps"]) == (25_000, 100_000)
    assert (figures["devices"], figures["device_batch"], figures["accumulation"]) == (8, 3125, 1)


@pytest.mark.parametrize(
    ("devices", "device_tokens", "expected"),
    [(1, 0, (1, 25_000)), (1, 4096, (7, 3572)), (8, 4096, (1, 3125)), (2, 12_500, (1, 12_500)), (3, 5000, (2, 4167))],
)
def test_a_batch_is_divided_into_micro_batches(devices: int, device_tokens: int, expected: tuple[int, int]) -> None:
    figures = describe(compose([f"training.device_tokens={device_tokens}"]), devices)
    assert (figures["accumulation"], figures["device_batch"]) == expected
    assert devices * figures["accumulation"] * figures["device_batch"] >= 25_000
    assert not device_tokens or figures["device_batch"] <= device_tokens


def test_time_follows_from_the_flops_and_the_peak(capsys: pytest.CaptureFixture[str]) -> None:
    found = describe(compose(["describe.device=l4"]), 2)
    flops = found["steps"] * found["flops_per_step"]
    assert found["estimate"]["hours"] == pytest.approx(flops / (2 * 0.4 * 121e12) / 3600)
    run(compose(["describe.device=l4", "describe.gpus=2"]))
    assert "on 2 x l4, if training reaches 40% of 121 TFLOP/s in bf16" in capsys.readouterr().out
    assert describe(compose(["runtime.device=cpu"]), 1)["estimate"]["hours"] > 0


@pytest.mark.parametrize(("experiment", "derives"), [("own", True), ("demo", False)])
def test_values_that_training_derives_are_said_to_be_open(experiment: str, derives: bool, tmp_path: Path) -> None:
    config = compose([f"experiment={experiment}", f"paths.data={tmp_path}", f"paths.outputs={tmp_path}"])
    assert ("training will derive" in as_text(config, describe(config, 1))) == derives


def test_output_to_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="output=jsn: describe writes to standard output only"):
        run(compose(["output=jsn"]))


def test_prepared_corpora_count_if_all_of_a_mixture_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_tokenizer, "run_in_process", lambda function, *args: function(*args))
    words = [
        "data=files",
        "data.corpus=toy",
        f"paths.data={tmp_path}",
        "tokenizer.vocab_size=100",
        "runtime.device=cpu",
    ]
    for number, (name, count) in enumerate((("train", 60), ("mixture.more.train", 40), ("valid", 5), ("test", 5))):
        words.append(f"data.{name}={write_pairs(tmp_path / name, text_pairs(count, number))}")
    alone, mixture = compose([word for word in words if "mixture" not in word]), compose(words)
    assert describe(alone, 1)["data"] is None
    prepare(alone, lambda _: None)
    part = describe(alone, 1)
    assert (part["vocabularies"], part["parameters"]["embedding"]) == ((100, 100), 100 * 512)
    assert part["data"]["pairs"] == 60
    assert describe(mixture, 1)["data"] is None
    assert "unknown until the data is prepared" in as_text(mixture, describe(mixture, 1))
    prepare(mixture, lambda _: None)
    assert describe(mixture, 1)["data"]["pairs"] == 100
    assert describe(compose([*words, "tokenizer.vocab_size=90"]), 1)["vocabularies"] == (90, 90)
    (tmp_path / "toy" / "train.store.json").unlink()  # as where only the test text was fetched
    assert describe(alone, 1)["data"] is None
