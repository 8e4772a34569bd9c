"""Complete the settings of every command: with the values of the run once it has begun, else with those of its text."""

from collections.abc import Container

from nmt.config.commands import DERIVED, HOLD_OUT, LANGUAGES, OF_DATA, SHAPE
from nmt.config.compose import compose
from nmt.config.data import NOT_OF_THE_TEXT, is_text
from nmt.config.keys import all_keys, value_of, with_values
from nmt.config.saved import from_yaml, read_saved
from nmt.config.tree import Config
from nmt.data.manifest import read_manifest
from nmt.errors import ConfigError, UserError
from nmt.own_text.text_size import values_for_text
from nmt.runs.layout import SETTINGS, RunLayout

EXPERIMENT = "experiment=own"
"""The settings that are replaced; a value that differs from theirs was given."""
OF_THE_FEATURE = ("own.derive", "own.minutes")
"""Settings that a run that has begun keeps, besides those that were derived."""


def derivable_from_text(config: Config) -> tuple[str, ...]:
    """Return the settings that can be derived before the text of a run is prepared."""
    if not is_text(config.data.target_lang):
        return LANGUAGES
    return (*LANGUAGES, HOLD_OUT) if config.training.init_from else OF_DATA


def with_values_for_text(config: Config, given: Container[str]) -> Config:
    """Return the settings with the values of a run that has begun, or with what is derived before preparing the text.

    Args:
        config: All settings.
        given: The settings and groups that the user gives; they keep their values.
    """
    config = _with_prepared_text(config, given)
    own = config.own
    if HOLD_OUT in given and config.data.hold_out and config.data.valid and config.data.test:
        raise ConfigError(
            f"{HOLD_OUT}={config.data.hold_out:g} has no effect, because data.valid and data.test are named: "
            "leave it out"
        )
    if not own.derive:
        return config
    names = {name for name in OF_THE_FEATURE if name in given or "own" in given}
    keep = [*own.keep, *(name for name in _given(config, given) if name not in own.keep)]
    config = with_values(config, {"own.keep": keep})
    if (begun := as_begun(config, names)) is not None:
        return begun
    open_names = [name for name in derivable_from_text(config) if name not in keep]
    return with_values(config, values_for_text(config, open_names)) if open_names else config


def as_begun(config: Config, given: Container[str]) -> Config | None:
    """Return the settings with those of the run's newest checkpoint, except for what is given; None if it has none."""
    newest = RunLayout(config.run_folder).newest_checkpoint()
    if newest is None:
        return None
    try:
        saved = read_saved(newest / SETTINGS, from_yaml)
    except (UserError, OSError):  # the command reports it if it needs the checkpoint
        return config
    open_names = [name for name in DERIVED if name not in config.own.keep]
    open_names += [name for name in OF_THE_FEATURE if name not in given]
    values = {name: value_of(saved, name) for name in open_names}
    if saved.data.train != config.data.train:  # another text, from which a corpus of its own can be prepared
        of_text = [name for name in OF_DATA if name in open_names]
        values = {name: value for name, value in values.items() if name not in of_text}
        values |= values_for_text(config, of_text)
    return with_values(config, values)


def _with_prepared_text(config: Config, given: Container[str]) -> Config:
    """Return the settings with those of the prepared corpus, if nothing says which files have the training text."""
    if config.data.source != "files" or "data" in given or "data.train" in given:
        return config
    usual = compose([EXPERIMENT])
    if config.data.train != usual.data.train:  # a file of settings names them
        return config
    others = {*(f"data.{name}" for name in NOT_OF_THE_TEXT), *DERIVED}
    try:
        groups = read_manifest(config.data_folder).settings.items()
        recorded = {
            f"{group}.{name}": value
            for group, settings in groups
            if isinstance(settings, dict)
            for name, value in settings.items()
        }
        open_names = [
            name
            for name in recorded.keys() & all_keys().keys() - others
            if name not in given and value_of(config, name) == value_of(usual, name)
        ]
        return with_values(config, {name: recorded[name] for name in open_names})
    except (UserError, OSError, TypeError, AttributeError, ValueError):  # a command that needs the corpus reports it
        return config


def _given(config: Config, given: Container[str]) -> list[str]:
    """Return the derived settings that the user gives: by name, by their group, or in a file of settings."""
    usual = compose([EXPERIMENT])
    found = [
        name
        for name in DERIVED
        if name in given or name.partition(".")[0] in given or value_of(config, name) != value_of(usual, name)
    ]
    stacks = ("model.encoder_layers", "model.decoder_layers")
    shape = any(name in found for name in SHAPE) or any(value_of(config, name) for name in stacks)
    return [name for name in DERIVED if name in found or (shape and name in SHAPE)]
