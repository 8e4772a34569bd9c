"""The settings that a run can be resumed with."""

from dataclasses import asdict
from typing import Any

import pytest
import yaml

from nmt.config.registry import CHOICES
from nmt.config.saved import check_resumable, flatten, read_settings
from nmt.config.training import SCHEDULES_WITHOUT_END, TrainingConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.training.schedule import learning_rate

SETTINGS = flatten(asdict(Config()))


def other(value: Any) -> Any:
    if isinstance(value, bool | None):
        return not value
    if isinstance(value, str):
        return value + "x"
    return [*value, "x"] if isinstance(value, list) else value + 1


def test_settings_are_unchanged_after_a_round_trip_through_yaml() -> None:
    assert read_settings(yaml.safe_dump(asdict(Config()))) == SETTINGS
    assert SETTINGS["training.adam_eps"] == 1e-9
    with pytest.raises(UserError, match="not YAML") as caught:
        read_settings("a: [1\nb: ]")
    assert "\n" not in str(caught.value)


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
        *("guided_weight", "init_from", "init_skip", "init_vocabulary", "freeze", "ema", "muon_rate", "r_drop"),
    }
    machines = {"data.engine"}  # where text is prepared, which changes none of it
    groups = {key for key in SETTINGS if key.split(".")[0] in ("data", "tokenizer", "model", "noise", "own")}
    groups -= machines | {"own.keep"}  # the latter says which settings are not derived before a run begins
    assert len(groups) > 25
    assert fixed == {"seed"} | {f"training.{name}" for name in training} | groups
    assert groups <= fixed


def test_the_error_names_both_values_and_a_remedy() -> None:
    changed = SETTINGS | {"training.batch_tokens": 512, "model.d_ff": 64, "training.steps": 7}
    with pytest.raises(UserError) as caught:
        check_resumable(SETTINGS, changed)
    message = str(caught.value)
    assert "\n" not in message
    assert "model.d_ff was 2048 and is now 64, training.batch_tokens was 25000 and is now 512" in message
    assert message.endswith("set model.d_ff=2048 training.batch_tokens=25000")
    assert "name=" in message
    assert "training.steps" not in message


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_the_number_of_steps_is_fixed_if_the_schedule_depends_on_it(schedule: str) -> None:
    settings = SETTINGS | {"training.schedule": schedule}
    check_resumable(settings, settings)
    with pytest.raises(UserError, match=r"training.steps was 100000 and is now 7"):
        check_resumable(settings, settings | {"training.steps": 7})


@pytest.mark.parametrize("schedule", CHOICES["training.schedule"])
def test_schedules_that_depend_on_the_number_of_steps_are_listed(schedule: str) -> None:
    short, long = (
        TrainingConfig(schedule=schedule, learning_rate=1.0, warmup_steps=10, steps=steps) for steps in (100, 200)
    )
    same = all(learning_rate(step, short, 512) == learning_rate(step, long, 512) for step in range(1, 101))
    assert same == (schedule in SCHEDULES_WITHOUT_END)


def test_a_setting_missing_in_the_checkpoint_had_its_default() -> None:
    saved = {key: value for key, value in SETTINGS.items() if key != "model.norm"}
    check_resumable(saved, SETTINGS)
    with pytest.raises(UserError, match=r"model.norm was layer and is now rms"):
        check_resumable(saved, SETTINGS | {"model.norm": "rms"})
