"""Which settings a run may go on with."""

from dataclasses import asdict
from typing import Any

import pytest
import yaml

from nmt.config.saved import flatten, read_settings
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.runs.compatibility import check_resumable

SETTINGS = flatten(asdict(Config()))


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    return [*value, "x"] if isinstance(value, list) else value + 1


def test_settings_come_back_from_yaml() -> None:
    assert read_settings(yaml.safe_dump(asdict(Config()))) == SETTINGS
    assert SETTINGS["training.adam_eps"] == 1e-9
    with pytest.raises(UserError, match="not YAML") as caught:
        read_settings("a: [1\nb: ]")
    assert "\n" not in str(caught.value)


def test_every_setting_is_either_free_or_named_when_it_changes() -> None:
    """The list of the fixed ones is written out, so that a new setting must be thought about."""
    fixed = set()
    for key, value in SETTINGS.items():
        try:
            check_resumable(SETTINGS, SETTINGS | {key: other(value)})
        except UserError:
            fixed.add(key)
    training = {
        *("batch_tokens", "schedule", "warmup_steps", "learning_rate", "label_smoothing", "adam_beta1", "adam_beta2"),
        *("adam_eps", "weight_decay", "clip_norm"),
    }
    groups = {key for key in SETTINGS if key.split(".")[0] in ("data", "tokenizer", "model")}
    assert len(groups) > 25
    assert fixed == {"seed"} | {f"training.{name}" for name in training} | groups


def test_each_change_is_named_with_both_values_and_the_way_out() -> None:
    changed = SETTINGS | {"training.batch_tokens": 512, "model.d_ff": 64, "training.steps": 7}
    with pytest.raises(UserError) as caught:
        check_resumable(SETTINGS, changed)
    message = str(caught.value)
    assert "\n" not in message
    assert "model.d_ff was 2048 and is now 64, training.batch_tokens was 25000 and is now 512" in message
    assert message.endswith("set model.d_ff=2048 training.batch_tokens=25000")
    assert "name=" in message
    assert "training.steps" not in message


def test_a_cosine_cannot_change_its_end() -> None:
    cosine = SETTINGS | {"training.schedule": "cosine"}
    check_resumable(cosine, cosine)
    with pytest.raises(UserError, match=r"training.steps was 100000 and is now 7"):
        check_resumable(cosine, cosine | {"training.steps": 7})


def test_a_setting_that_is_newer_than_the_checkpoint_had_its_default() -> None:
    saved = {key: value for key, value in SETTINGS.items() if key != "model.norm"}
    check_resumable(saved, SETTINGS)
    with pytest.raises(UserError, match=r"model.norm was layer and is now rms"):
        check_resumable(saved, SETTINGS | {"model.norm": "rms"})
