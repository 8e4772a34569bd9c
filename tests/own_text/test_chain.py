"""Two files become a trained model without a number: measured, planned, said in one line, and resumed as planned."""

import re
from pathlib import Path

import pytest

from nmt.cli import composed_settings
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.own_text import prepare
from nmt.runs.layout import RunLayout
from tests.integration.toy import pairs, refuse, succeed, write_pairs
from tests.quick_processes import run_together

TINY = ["model.layers=1", "model.d_model=32", "model.d_ff=32", "model.heads=2", "training.valid_sentences=0"]
SECONDS_OF_30_STEPS_A_MINUTE = 60 * 0.9 / 30.5


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Settings of a run on two files, with a model that is quick to train."""
    files = f"data.train={write_pairs(tmp_path / 'train', pairs(300, 1))}"
    paths = [f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs", "data.hold_out=0.03"]
    machine = ["runtime.device=cpu", "runtime.threads=1", "runtime.precision=fp32"]
    return ["experiment=own", files, *paths, *machine, *TINY]


def saved(folder: Path, name: str = "own") -> Config:
    return from_yaml(RunLayout(folder / "outputs" / name).settings.read_text(encoding="utf-8"))


def test_batches_for_which_the_memory_is_too_small_are_not_planned(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    most_tokens = 1024

    def measure(config: Config, *_: object) -> float:
        if config.training.batch_tokens > most_tokens:
            raise MemoryError
        return 2.5  # so that a minute has 20 steps

    assert "run `make data`" in refuse(["train", *words])
    monkeypatch.setattr(prepare, "_timed", measure)
    succeed(["data", *words])
    training = prepare.plan_training(composed_settings([*words, "own.minutes=1"])).training
    assert (training.batch_tokens, training.steps) == (1024, 20)
    most_tokens = 512
    said = refuse(["train", *words, "own.minutes=1"])
    assert "the memory is too small for a training step of 1,024 tokens with model.d_model=32" in said


def test_processes_that_train_together_measure_together_and_resume_as_planned(words: list[str], tmp_path: Path) -> None:
    """Both measure their own time and make the same plan, and join again to train."""
    succeed(["data", *words])
    done = run_together(["train", *words, "own.minutes=0.02", "training.warmup_steps=2"], processes=2)
    assert done.returncode == 0, done.stderr
    seconds = float(re.search(r"0.02 minutes, ([\d.]+) s per step", done.stdout)[1])  # type: ignore[index]
    planned = saved(tmp_path).training
    assert planned.steps == 10 or planned.steps * seconds <= 1.2  # the fewest steps, or what 0.02 minutes are
    assert (planned.warmup_steps, planned.schedule) == (2, "linear")
    assert f" training.steps={planned.steps} " in done.stdout
    assert "warmup_steps" not in done.stdout
    assert f"finished at step {planned.steps} of {planned.steps}" in done.stdout
    again = succeed(["train", *words, "training.warmup_steps=2"])
    assert "is finished: it is at step" in again
    assert "own.derive" not in again
    assert "own.minutes was 0.02 and is now 2.0" in refuse(["train", *words, "own.minutes=2"])


def test_later_commands_need_not_name_the_text_and_other_text_is_refused(words: list[str], tmp_path: Path) -> None:
    text, later = words[1], [word for word in words if not word.startswith(("data.train", "data.hold_out"))]
    kept = ["tokenizer.model_type=unigram", "data.max_words=30"]
    succeed(["all", *words, *kept, "training.steps=10", "decoding.beam=1"])
    assert "is finished" in succeed(["train", *later])
    assert "train 287 pairs" in succeed(["data", *later])
    assert saved(tmp_path).data.train == [f"{tmp_path}/train.en", f"{tmp_path}/train.de"]
    corpus = tmp_path / "data" / "own"
    before = {file.name: file.read_bytes() for file in corpus.iterdir()}
    other = text.replace("train.en", "other.en").replace("train.de", "other.de")
    assert "was prepared with data.train=" in refuse(["eval", *later, other])
    assert "run own began with tokenizer.vocab_size=" in refuse(["data", *words, *kept, "tokenizer.vocab_size=90"])
    write_pairs(tmp_path / "train", pairs(100, 2))
    assert "run own began with another text in data.train=" in refuse(["all", *words, *kept])
    assert {file.name: file.read_bytes() for file in corpus.iterdir()} == before


def test_back_translated_text_and_another_model_keep_the_plan_of_the_minutes(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "seconds_per_step", lambda *_: SECONDS_OF_30_STEPS_A_MINUTE)
    succeed(["data", *words])
    succeed(["train", *words, "training.steps=2"])
    mixed = [*words, f"data.mixture.made.train={write_pairs(tmp_path / 'made', pairs(200, 2))}"]
    tuned = [*(word for word in words if not word.startswith("model.")), "training.init_from=own"]
    for name, of_run in {"mixed": mixed, "tuned": tuned}.items():
        of_run += [f"name={name}", f"data.corpus={name}"]
        succeed(["data", *of_run])
        said = succeed(["train", *of_run, "own.minutes=1"])
        planned = saved(tmp_path, name)
        assert "finished at step 30 of 30" in said
        assert (planned.training.steps, planned.training.schedule, planned.model.d_model) == (30, "linear", 32)
        assert planned.training.learning_rate == (1.2e-2 if name == "mixed" else 8e-3)
        assert ("487 pairs, " if name == "mixed" else "own.derive: ") in said
    succeed(["train", *mixed, "name=adam", "training.optimizer=adam", "own.minutes=1"])
    assert saved(tmp_path, "adam").training.learning_rate == 8e-3
