"""Forecasts of runs: when there is one, what is logged, and that training stays the same."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.cli import composed_settings
from nmt.config.compose import compose
from nmt.config.schema import Config
from nmt.data.store import writing
from nmt.features.forecast.figures import Forecast, forecast_in
from nmt.features.forecast.hook import end_of_rate, forecaster, last_step
from nmt.features.forecast.learn import Band
from nmt.features.forecast.section import forecasts
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import event_of, read_metrics
from nmt.runs.section import ShownRun
from nmt.storage.files import write_text
from nmt.training.hook import Report
from tests.integration.toy import pairs, refuse, succeed
from tests.unit.small_models import make_tokenizer

STEPS = 600


def run_of(folder: Path, *settings: str) -> Config:
    schedule = ("training.schedule=cosine", f"training.steps={STEPS}", "training.warmup_steps=60")
    return compose([f"paths.outputs={folder}", f"paths.data={folder}/data", "name=run", *schedule, *settings])


def log(config: Config, *events: dict[str, Any]) -> None:
    path = RunLayout(config.run_folder).metrics
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"time": 0.0, **each}) + "\n" for each in events)


def log_training(config: Config, until: int, seconds: float = 2.0) -> None:
    steps = range(20, until + 1, 20)
    log(
        config, *({"event": "train", "step": s, "loss": 2 + 8 * s**-0.2, "seconds": seconds, "epoch": 0} for s in steps)
    )


def validated(config: Config, step: int, loss: float, **figures: float) -> Report:
    hook = forecaster(config)
    assert hook is not None
    return hook.validated(step, {"loss": loss, **figures})


def test_a_validation_after_a_sixth_of_the_run_has_a_forecast(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    log_training(config, until=200)
    assert validated(config, 80, 5.5) == Report()
    report = validated(config, 200, 4.8)
    figures = {name: float(str(value)) for name, value in report.figures.items()}
    assert figures["forecast_step"] == STEPS
    assert 2 < figures["forecast_loss_low"] < figures["forecast_loss"] < figures["forecast_loss_high"] < 4.8
    assert "forecast_bleu" not in figures
    (line,) = report.lines
    assert line.startswith(f"forecast for step {STEPS}  smoothed loss {figures['forecast_loss']:.3f} (")


def test_nothing_is_forecast_during_the_warmup_or_at_the_end(tmp_path: Path) -> None:
    config = run_of(tmp_path, "training.warmup_steps=300")
    log_training(config, until=600)
    assert validated(config, 200, 4.8) == Report()
    assert validated(config, 300, 4.8) != Report()
    assert validated(config, 600, 4.0) == Report()


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_run_that_diverges_has_no_forecast(tmp_path: Path, loss: float) -> None:
    config = run_of(tmp_path)
    log_training(config, until=200)
    log(config, {"event": "valid", "step": 100, "loss": 5.0})
    assert validated(config, 200, loss) == Report()
    assert validated(config, 200, 5.1) == Report()


def test_a_run_whose_losses_were_not_finite_has_a_forecast_again(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    log(config, {"event": "train", "step": 20, "loss": None}, {"event": "valid", "step": 100, "loss": None})
    assert validated(config, 200, 5.0) != Report()


def test_a_run_without_any_metrics_yet_has_a_forecast(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    log(config, {"event": "start", "step": 0})
    assert validated(config, 200, 5.0) != Report()


def test_metrics_that_cannot_be_read_cost_only_the_forecast(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    assert validated(config, 200, 5.0) == Report()
    log(config, {"event": "train", "step": "none"}, {"event": "start", "step": 0})
    assert validated(config, 200, 5.0) == Report()


def test_overfitting_run_keeps_its_best_loss(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    log_training(config, until=500)
    log(config, {"event": "valid", "step": 100, "loss": 5.0}, {"event": "valid", "step": 200, "loss": 4.0})
    figures = validated(config, 500, 4.9).figures
    assert float(str(figures["forecast_loss_high"])) <= 4.0


def test_text_that_is_more_regular_than_that_of_earlier_runs_has_no_forecast(tmp_path: Path) -> None:
    config = run_of(tmp_path, "tokenizer.vocab_size=2000", "training.label_smoothing=0.1")
    entropy = -0.9 * math.log(0.9) - 0.1 * math.log(0.1 / 2000)
    log_training(config, until=200)
    log(config, {"event": "valid", "step": 200, "loss": 4.8})
    assert validated(config, 300, entropy + 1.21) != Report()
    assert validated(config, 300, entropy + 1.19) == Report()
    assert validated(config, 300, entropy + 0.1) == Report()


def test_the_vocabulary_of_the_text_decides_how_low_the_loss_can_be(tmp_path: Path) -> None:
    config, tokenizer = run_of(tmp_path, "tokenizer.vocab_size=30000"), make_tokenizer(joint=False)
    tokenizer.save(config.data_folder)
    log_training(config, until=200)
    log(config, {"event": "valid", "step": 200, "loss": 4.8})
    entropy = -0.9 * math.log(0.9) - 0.1 * math.log(0.1 / tokenizer.target_size)
    hook = forecaster(config)
    assert hook is not None
    shutil.rmtree(config.data_folder)  # read when training began
    assert hook.validated(300, {"loss": entropy + 1.21}) != Report()
    assert hook.validated(300, {"loss": entropy + 1.19}) == Report()


def test_no_forecast_if_the_settings_say_so(tmp_path: Path) -> None:
    assert forecaster(run_of(tmp_path, "training.forecast=false")) is None
    assert "training.forecast" in refuse(["train", "training.forecast=maybe"])


@pytest.mark.parametrize(("limit", "expected"), [("training.max_training_minutes=1", 500), ("training.steps=700", 700)])
def test_a_limit_of_time_ends_a_run_at_an_earlier_step(tmp_path: Path, limit: str, expected: int) -> None:
    config = run_of(tmp_path, limit)
    log_training(config, until=200, seconds=2.4)  # 0.12 s per step, so 60 s are 500 steps
    assert last_step(config, read_metrics(RunLayout(config.run_folder).metrics), 200) == expected


def test_steps_that_an_interruption_left_untimed_take_as_long_as_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = run_of(tmp_path, "training.max_training_minutes=1")
    log_training(config, until=100, seconds=2.4)
    line = {"event": "train", "loss": 4.0, "epoch": 0}
    log(config, {"event": "start", "step": 115}, {**line, "step": 120, "seconds": 0.6})
    found = read_metrics(RunLayout(config.run_folder).metrics)
    assert end_of_rate(config, found) == 500  # 0.12 s per step
    limited = run_of(tmp_path, "training.max_minutes=1")
    monkeypatch.setattr("nmt.features.forecast.hook.uptime", lambda: 48.0)
    assert last_step(limited, found, 120) == 220


def test_a_run_that_time_ends_early_has_a_forecast_after_a_sixth_of_its_minutes(tmp_path: Path) -> None:
    config = run_of(tmp_path, "training.steps=6000", "training.max_training_minutes=1")
    log_training(config, until=200, seconds=2.4)
    assert validated(config, 80, 5.5) == Report()
    assert validated(config, 100, 5.0).figures["forecast_step"] == 500
    assert validated(config, 490, 4.0) == Report()  # the minutes may be over


def test_a_limit_of_a_process_counts_from_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = run_of(tmp_path, "training.max_minutes=1")
    log_training(config, until=200, seconds=2.4)
    monkeypatch.setattr("nmt.features.forecast.hook.uptime", lambda: 48.0)
    events = read_metrics(RunLayout(config.run_folder).metrics)
    assert last_step(config, events, 200) == 300
    assert end_of_rate(config, events) == config.training.steps  # the rate does not follow the limit of a process


def test_figures_of_a_forecast_are_read_again() -> None:
    made = Forecast(900, Band(3.0, 2.9, 3.2), Band(20.0, 15.0, 25.0))
    event = event_of({"event": "valid", "step": 300, "time": 1.0, "loss": 4.0, **made.figures})
    assert forecast_in(event) == made
    without = made._replace(bleu=None)
    assert forecast_in(event_of({"event": "valid", "step": 300, "time": 1.0, **without.figures})) == without
    assert forecast_in(event_of({"event": "valid", "step": 300, "time": 1.0, "loss": 4.0})) is None
    assert forecast_in(event_of({"event": "valid", "step": 3, "forecast_step": 9, "forecast_loss": None})) is None


def test_page_compares_the_forecasts_with_the_end(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    assert forecasts(ShownRun(config, {})) is None  # nothing is logged yet
    log(config, {"event": "valid", "step": 100, "loss": 5.0, "bleu": 1.0})
    assert forecasts(ShownRun(config, {})) is None
    made = Forecast(600, Band(3.0, 2.9, 3.2), Band(20.0, 15.0, 25.0))
    log(config, {"event": "valid", "step": 200, "loss": 4.0, "bleu": 9.0, **made.figures})
    log(config, {"event": "valid", "step": 600, "loss": 3.0987, "bleu": 17.5})
    section = forecasts(ShownRun(config, {}))
    assert section is not None
    for text in ("3.000", "(2.900 to 3.200)", "20.0", "(15.0 to 25.0)", "3.099", "17.5"):
        assert text in section.body
    log(config, {"event": "valid", "step": "no number"})
    log(config)
    with RunLayout(config.run_folder).metrics.open("a", encoding="utf-8") as file:
        file.write("\n\n")
    assert forecasts(ShownRun(config, {})) is None  # a damaged file is an error elsewhere


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The overrides of a small run, whose data is prepared."""
    folder = tmp_path_factory.mktemp("forecast")
    for seed, (split, count) in enumerate({"train": 300, "valid": 20, "test": 20}.items()):
        for side, language in enumerate(("en", "de")):
            lines = "".join(pair[side] + "\n" for pair in pairs(count, seed))
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    overrides = [
        "data=files", f"paths.data={folder / 'data'}", "tokenizer.vocab_size=120", "name=run", "data.max_pieces=60",
        *(f"data.{split}=[{folder}/{split}.en,{folder}/{split}.de]" for split in ("train", "valid", "test")),
        "model.layers=1", "model.d_model=32", "model.d_ff=64", "model.heads=2", "training.batch_tokens=400",
        "training.steps=24", "training.warmup_steps=4", "training.learning_rate=5e-3", "training.log_every=2",
        "training.valid_every=6", "training.save_every=6", "training.valid_sentences=8", "averaging.last=2",
        "runtime.threads=1", "runtime.device=cpu", "runtime.precision=fp32",
    ]  # fmt: skip
    succeed(["data", *overrides])
    return overrides


def events(outputs: Path, *without: str) -> list[dict[str, Any]]:
    """Return the events of a run without what depends on the clock."""
    lines = [json.loads(line) for line in (outputs / "run" / "metrics.jsonl").read_text().splitlines()]
    clock = {"time", "seconds", "tokens_per_second", *without}
    return [
        {key: value for key, value in each.items() if key not in clock} for each in lines if each["event"] != "start"
    ]


def test_training_is_the_same_with_and_without_forecasts_and_when_it_resumes(
    settings: list[str], tmp_path: Path
) -> None:
    with_them, without, resumed = (tmp_path / name for name in ("with", "without", "resumed"))
    succeed(["train", *settings, f"paths.outputs={with_them}"])
    succeed(["train", *settings, f"paths.outputs={without}", "training.forecast=false"])
    found = events(with_them)
    made = [name for each in found for name in each if name.startswith("forecast_")]
    assert events(with_them, *made) == events(without)
    assert [each["step"] for each in found if "forecast_loss" in each] == [6, 12, 18]
    config, after = composed_settings([*settings, f"paths.outputs={with_them}"]), found[-1]["loss"]
    assert "forecast_bleu" not in validated(config, 12, after, nll=1.0, bleu=1.9).figures
    figures = validated(config, 12, after, nll=1.0, bleu=2.0).figures
    low, high = (float(str(figures[f"forecast_bleu_{end}"])) for end in ("low", "high"))
    assert 0 <= low < high <= 100

    shutil.copytree(with_them, resumed, symlinks=True)
    checkpoints = RunLayout(resumed / "run").checkpoints
    for name in ("last", "best"):
        (checkpoints / name).unlink()
    for step in (18, 24):
        shutil.rmtree(checkpoints / f"step-{step:08}")
    succeed(["train", *settings, f"paths.outputs={resumed}"])
    assert events(resumed) == found


def test_text_that_is_gone_costs_only_the_forecast_of_bleu(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    log_training(config, until=200)
    figures = validated(config, 200, 4.8, nll=4.2, bleu=3.0).figures
    assert "forecast_loss" in figures
    assert "forecast_bleu" not in figures


def test_forecast_of_bleu_needs_only_the_text_that_training_began_with(tmp_path: Path) -> None:
    config = run_of(tmp_path)
    log_training(config, until=200)
    ids, lengths = np.full(30, 9, np.uint16), np.full(10, 3, np.int32)
    with writing(config.data_folder, "valid", ("en", "de"), 60) as writer:
        writer.append(ids, lengths, ids, lengths)
    write_text(config.data_folder / "valid.de", "ein baum\n" * 10)
    hook = forecaster(config)
    assert hook is not None
    shutil.rmtree(config.data_folder)
    assert "forecast_bleu" in hook.validated(200, {"loss": 4.8, "nll": 4.2, "bleu": 3.0}).figures
