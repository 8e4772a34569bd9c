"""Which settings may change between the parts of an interrupted run, and which may not."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nmt.config.keys import all_keys
from nmt.config.saved import flatten
from nmt.config.schema import Config
from nmt.errors import UserError


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The settings that differ, with both values; one that was not there yet had today's default."""
    defaults = flatten(asdict(Config()))
    pairs = {
        key: (before.get(key, defaults.get(key)), after.get(key, defaults.get(key)))
        for key in sorted(before.keys() | after.keys())
    }
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}


def check_resumable(saved: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Make sure that a run goes on with the settings it was started with.

    Args:
        saved: The settings of the checkpoint, as dotted keys.
        current: The settings now, as dotted keys.
    """
    fixed = {
        key: values
        for key, values in differences(saved, current).items()
        if not _is_adjustable(key) or _bends_schedule(key, current)
    }
    if fixed:
        changes = ", ".join(f"{key} was {old} and is now {new}" for key, (old, new) in fixed.items())
        way_back = " ".join(f"{key}={old}" for key, (old, _) in fixed.items())
        raise UserError(
            f"this run cannot go on with other settings: {changes}. "
            f"Give it another name= to start anew, or set {way_back}"
        )


def _is_adjustable(key: str) -> bool:
    """Return whether the schema lets this setting change; a setting that it no longer has must not."""
    return key in all_keys() and all_keys()[key].adjustable


def _bends_schedule(key: str, current: Mapping[str, Any]) -> bool:
    """A cosine ends at the last step, so another last step changes the rate of all the others."""
    return key == "training.steps" and current.get("training.schedule") == "cosine"
