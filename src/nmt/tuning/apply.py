"""Take the settings that tuning chose, for a run that leaves them open.

A run keeps the settings that it began with. They change rounding and dropout masks, so a run that began without tuned
settings resumes without them, and one that began with some resumes with the same, whatever has been measured since.
"""

import os
from typing import NamedTuple

from nmt.config.keys import value_of, with_values, written
from nmt.config.schema import Config
from nmt.errors import CommonError, UserError
from nmt.runs.layout import RunLayout, step_of_folder_name
from nmt.storage.files import remove, write_text
from nmt.tuning.choices import TUNABLE
from nmt.tuning.record import Tuned, fingerprint, first_difference, read_tuned, tuned_file


class Taken(NamedTuple):
    """The settings of a run after tuned ones are taken."""

    config: Config
    message: str
    """One line for the user; empty if there is nothing to say."""
    tuned: Tuned | None
    """The file that was taken."""


def take_tuned(config: Config) -> Taken:
    """Return the settings, with tuned values for those that they leave open if there are some for this run."""
    if config.runtime.tuned == "off":
        return Taken(config, "", None)
    required, begun = config.runtime.tuned == "required", has_begun(config)
    expected = fingerprint(config, int(os.environ.get("WORLD_SIZE", "1")))
    path = RunLayout(config.run_folder).tuned if begun else tuned_file(config, expected)
    if not path.exists():
        if required:
            raise CommonError(_missing(config, begun=begun))
        return Taken(config, "", None)
    try:
        tuned = read_tuned(path, config)
        if difference := first_difference(tuned.fingerprint, expected):
            raise UserError(f"{path} was measured for something else: {difference}")
        left_open = (key for key in tuned.settings if value_of(config, key) == TUNABLE[key].open_value)
        values = {key: tuned.settings[key] for key in left_open}
        tuned_config = with_values(config, values)
    except UserError as error:
        if required:
            raise CommonError(str(error)) from error
        return Taken(config, f"warning: {error}; this run does not use it", None)
    listed = " ".join(f"{key}={written(value)}" for key, value in values.items())
    return Taken(tuned_config, f"tuned settings of {path}: {listed or 'the defaults'}", tuned)


def keep_tuned(config: Config, tuned: Tuned | None) -> None:
    """Keep the tuned settings of a new run in its folder, for when it is resumed."""
    path = RunLayout(config.run_folder).tuned
    if tuned is None:
        remove(path)
    else:
        write_text(path, tuned.text)


def has_begun(config: Config) -> bool:
    """Return whether a run has a checkpoint to resume from."""
    folder = RunLayout(config.run_folder).checkpoints
    return folder.is_dir() and any(step_of_folder_name(each.name) is not None for each in folder.iterdir())


def _missing(config: Config, *, begun: bool) -> str:
    if begun:
        return (
            f"run {config.name} began without tuned settings, and keeps the ones it began with: "
            "leave out runtime=tuned, or give the run another name= to start a new one"
        )
    return (
        f"there are no tuned settings for this machine, model and batch in {config.paths.outputs}/tuned: "
        "run `nmt tune` with the same settings first, or leave out runtime=tuned"
    )
