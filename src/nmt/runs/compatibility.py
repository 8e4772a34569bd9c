"""The settings that may change when a run is resumed, and those that may not."""

from collections.abc import Mapping
from dataclasses import asdict

from nmt.config.keys import all_keys
from nmt.config.saved import flatten
from nmt.config.training import SCHEDULES_WITHOUT_END
from nmt.config.tree import Config
from nmt.errors import UserError

Settings = Mapping[str, object]
"""The values of settings by dotted key."""


def differences(before: Settings, after: Settings) -> dict[str, tuple[object, object]]:
    """Return the settings that differ, each with both values; a missing setting has today's default."""
    defaults = flatten(asdict(Config()))
    pairs = {
        key: (before.get(key, defaults.get(key)), after.get(key, defaults.get(key)))
        for key in sorted(before.keys() | after.keys())
    }
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}


def check_resumable(saved: Settings, current: Settings) -> None:
    """Refuse to resume a run if a setting has changed that affects what the model learns.

    Args:
        saved: The settings in the checkpoint.
        current: The settings now.
    """
    fixed = {
        key: values
        for key, values in differences(saved, current).items()
        if not is_adjustable(key) or _changes_schedule(key, current)
    }
    if fixed:
        changes = ", ".join(f"{key} was {_shown(old)} and is now {_shown(new)}" for key, (old, new) in fixed.items())
        raise UserError(
            f"this run cannot be resumed with other settings: {changes}. "
            f"Give it another name= to start a new run, or {_way_back({key: old for key, (old, _) in fixed.items()})}"
        )


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)


def _way_back(before: Settings) -> str:
    """Return what makes settings as they were; only those of further corpora can have been missing."""
    changed = " ".join(f"{key}={old}" for key, old in before.items() if old is not None)
    added = " ".join(key for key, old in before.items() if old is None)
    return " and ".join([*([f"set {changed}"] if changed else []), *([f"remove {added}"] if added else [])])


def is_adjustable(key: str) -> bool:
    """Return whether the schema lets this setting change; a setting that it no longer has must not."""
    return key in all_keys() and all_keys()[key].adjustable


def _changes_schedule(key: str, current: Settings) -> bool:
    """Return whether a setting is the number of steps, and the schedule depends on it."""
    return key == "training.steps" and current["training.schedule"] not in SCHEDULES_WITHOUT_END
