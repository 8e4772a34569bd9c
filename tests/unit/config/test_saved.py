"""Saved settings: read back unchanged, refused in one line, without what is private, and compared on resume."""

import dataclasses
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.config.data import DataConfig
from nmt.config.registry import CHOICES
from nmt.config.saved import check_resumable, flatten, from_yaml, read_settings, to_yaml, without_folders
from nmt.config.training import SCHEDULES_WITHOUT_END, TrainingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.errors import ConfigError, UserError
from nmt.training.schedule import learning_rate

SETTINGS = flatten(asdict(Config()))


def test_saved_settings_are_read_back_unchanged() -> None:
    config = compose(["experiment=table3/b1", "input='a: b, [c] = ü'", "training.adam_eps=1e-9"])
    assert from_yaml(to_yaml(config)) == config
    assert read_settings(to_yaml(config)) == flatten(asdict(config))
    assert from_yaml("training:\n  steps: 7\n") == replace(Config(), training=TrainingConfig(steps=7))


@pytest.mark.parametrize("text", ["a${oc.env:TOKEN}", r"a\${name}", r"C:\${x}\\", "${", r"\\", "'${x}\""])
def test_nothing_in_saved_settings_is_resolved(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    config = dataclasses.replace(Config(), input=text, data=DataConfig(train=[text, "b"]))
    assert from_yaml(to_yaml(config)) == config
    found = read_settings(to_yaml(config))
    assert (found["input"], found["data.train"]) == (text, [text, "b"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("training:\n  stepz: 7\n", "there is no setting training.stepz; did you mean"),
        ("training:\n  ema: 0.9\n", "there is no setting training.ema"),
        ("sweep:\n  metric: loss\n", "there is no setting sweep;"),
        ("training:\n  steps: many\n", "training.steps must be a whole number, not 'many'"),
        ("training: [1\n", "line"),
        ("- 1\n- 2\n", "the saved settings are empty or not a list of"),
        ("", "the saved settings are empty"),
        ("training: 3\n", "training is a group of settings, and cannot be 3"),
    ],
)
def test_settings_that_cannot_be_read_are_reported_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_yaml(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ("/home/somebody/corpus/train.en", "train.en"),
        ("/home/a 'b: c/train.en", "a 'b: c/train.en"),
        ("~/corpus/train.en", "train.en"),
        ("../corpus/train.en", "train.en"),
        ("data/train.en", "data/train.en"),
        ("https://example.org/a", "https://example.org/a"),
        ("de:/srv/models/de", "de:de"),
        ("a ${b} / c", "a ${b} / c"),
    ],
)
def test_paths_of_a_machine_are_left_out(value: str, public: str) -> None:
    settings = Config(paths=PathsConfig(outputs="/home/somebody/outputs"), data=DataConfig(train=[value]))
    found = from_yaml(without_folders(to_yaml(settings)))
    assert (found.data.train, found.paths.outputs) == ([public], "outputs")
    assert found.model == settings.model


def other(value: Any) -> Any:
    if isinstance(value, bool | None):
        return not value
    if isinstance(value, str):
        return value + "x"
    return [*value, "x"] if isinstance(value, list) else value + 1


def test_only_the_listed_settings_are_fixed() -> None:
    """The fixed settings are written out, so that a new setting needs a decision."""
    fixed = set()
    for key, value in SETTINGS.items():
        try:
            check_resumable(SETTINGS, SETTINGS | {key: other(value)})
        except UserError:
            fixed.add(key)
    training = {
        *("batch_tokens", "group_by_length", "schedule", "warmup_steps", "learning_rate", "label_smoothing"),
        *("adam_beta1", "adam_beta2", "adam_eps", "weight_decay", "clip_norm", "optimizer"),
        *("guided_weight", "sampled_words", "init_from", "init_vocabulary", "freeze", "muon_rate"),
    }
    groups = {key for key in SETTINGS if key.split(".")[0] in ("data", "tokenizer", "model", "noise", "own")}
    adjustable = {"data.engine", "own.keep"}
    assert fixed == {"seed"} | {f"training.{name}" for name in training} | (groups - adjustable)


def test_the_error_of_a_resumed_run_names_both_values_and_a_remedy() -> None:
    changed = SETTINGS | {"training.batch_tokens": 512, "model.d_ff": 64, "training.steps": 7}
    with pytest.raises(UserError) as caught:
        check_resumable(SETTINGS, changed)
    message = str(caught.value)
    assert "\n" not in message
    assert "model.d_ff was 2048 and is now 64, training.batch_tokens was 25000 and is now 512" in message
    assert message.endswith("Set them as they were, or give the run another name= to start a new one")
    assert "training.steps" not in message
    missing = {key: value for key, value in SETTINGS.items() if key != "model.norm"}
    check_resumable(missing, SETTINGS)
    with pytest.raises(UserError, match=r"training.init_from was empty and is now demo\."):
        check_resumable(SETTINGS, SETTINGS | {"training.init_from": "demo"})
    with pytest.raises(UserError, match=r"model.norm was layer and is now rms"):
        check_resumable(missing, SETTINGS | {"model.norm": "rms"})


@pytest.mark.parametrize("schedule", CHOICES["training.schedule"])
def test_the_number_of_steps_is_fixed_if_the_schedule_depends_on_it(schedule: str) -> None:
    short, long = (
        TrainingConfig(schedule=schedule, learning_rate=1.0, warmup_steps=10, steps=steps) for steps in (100, 200)
    )
    same = all(learning_rate(step, short, 512) == learning_rate(step, long, 512) for step in range(1, 101))
    assert same == (schedule in SCHEDULES_WITHOUT_END)
    settings = SETTINGS | {"training.schedule": schedule}
    if same:
        check_resumable(settings, settings | {"training.steps": 7})
    else:
        with pytest.raises(UserError, match=r"training.steps was 100000 and is now 7"):
            check_resumable(settings, settings | {"training.steps": 7})


def test_runs_without_a_moving_average_of_the_weights_can_be_read_and_resumed() -> None:
    text = to_yaml(Config()).replace("training:\n", "training:\n  ema: 0.0\n")
    assert from_yaml(text) == Config()
    check_resumable(read_settings(text), SETTINGS)
    with pytest.raises(UserError, match=r"training\.ema"):
        check_resumable(read_settings(text.replace("ema: 0.0", "ema: 0.9")), SETTINGS)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghijklmn")
)


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "model: &a {x: *a}", "[" * 3000, "{a: " * 3000, "seed: " + "9" * 5000, BOMB]
)
def test_saved_settings_that_would_fill_the_memory_are_refused(text: str) -> None:
    for read in (from_yaml, read_settings):
        with pytest.raises(UserError, match=r"alias|nested|not YAML"):
            read(text)
