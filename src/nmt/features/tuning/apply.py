"""Take the settings that tuning chose, for a run that leaves them open.

A run keeps the settings that it began with. They change rounding and dropout masks, so a run that began without tuned
settings resumes without them, and one that began with some resumes with the same, whatever has been measured since.
"""

from functools import partial

from nmt.config.keys import value_of, with_values, written
from nmt.config.schema import Config
from nmt.errors import CommonError, UserError
from nmt.features.tuning.record import Tuned, fingerprint, first_difference, read_tuned, tuned_file
from nmt.features.tuning.settings import TunedRuntime
from nmt.launched import launched_processes
from nmt.measuring.choices import TUNABLE
from nmt.runs.layout import RunLayout, step_of_folder_name
from nmt.storage.files import remove, write_text
from nmt.training.preparation import Prepared

FILE = "tuned.yaml"
"""The tuned settings that a run took when it began, in its folder."""


def take_tuned(config: Config) -> Prepared:
    """Return the settings, with tuned values for those that they leave open if there are some for this run."""
    wanted = config.of(TunedRuntime).tuned
    keep = partial(keep_tuned, None)
    if wanted == "off":
        return Prepared(config, begin=keep)
    required, begun = wanted == "required", has_begun(config)
    expected = fingerprint(config, launched_processes())
    path = config.run_folder / FILE if begun else tuned_file(config, expected)
    if not path.exists():
        if required:
            raise CommonError(_missing(config, begun=begun))
        return Prepared(config, begin=keep)
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
        return Prepared(config, f"warning: {error}; this run does not use it", is_warning=True, begin=keep)
    listed = " ".join(f"{key}={written(value)}" for key, value in values.items())
    message = f"tuned settings of {path}: {listed or 'the defaults'}"
    return Prepared(tuned_config, message, begin=partial(keep_tuned, tuned))


def keep_tuned(tuned: Tuned | None, config: Config) -> None:
    """Keep the tuned settings of a new run in its folder, for when it is resumed."""
    path = config.run_folder / FILE
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
        f"there are no tuned settings for this machine, model and batch in {config.runs_folder}/tuned: "
        "run `nmt tune` with the same settings first, or leave out runtime=tuned"
    )
