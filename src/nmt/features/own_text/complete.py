"""Complete the settings of every command: with the values of the run once it has begun, else with those of its text."""

from collections.abc import Container

from nmt.config.commands import DERIVED, HOLD_OUT, LANGUAGES, OF_DATA, SHAPE
from nmt.config.compose import compose
from nmt.config.data import corpora_of, is_text
from nmt.config.keys import value_of, with_values
from nmt.config.saved import from_yaml, read_saved
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError
from nmt.features.own_text.text_size import languages_of_names, values_for_text
from nmt.runs.layout import SETTINGS, RunLayout, step_of_folder_name

EXPERIMENT = "experiment=own"
"""The settings that are replaced; a value that differs from theirs was given."""
OF_THE_FEATURE = ("own.derive", "own.minutes")
"""Settings that a run that has begun keeps, besides those that were derived."""


def reason_not_to_derive(config: Config) -> str:
    """Return why nothing can be derived from the text of a run; empty if it can."""
    if len(corpora_of(config.data)) > 1:
        return "the training text consists of several corpora"
    if not is_text(config.data.target_lang):
        return f"the target side is {config.data.target_lang}"
    if config.training.init_from:
        return "the run begins from another model"
    return ""


def with_values_for_text(config: Config, given: Container[str]) -> Config:
    """Return the settings with the values of a run that has begun, or with what is derived before preparing the text.

    Args:
        config: All settings.
        given: The settings and groups that the user gives; they keep their values.
    """
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
    derivable = LANGUAGES if reason_not_to_derive(config) else OF_DATA
    open_names = [name for name in derivable if name not in keep]
    return with_values(config, values_for_text(config, open_names)) if open_names else config


def as_begun(config: Config, given: Container[str]) -> Config | None:
    """Return the settings with those of the run's newest checkpoint, except for what is given; None if it has none."""
    checkpoints = RunLayout(config.run_folder).checkpoints
    steps = {step_of_folder_name(each.name): each for each in checkpoints.glob("step-*")}
    newest = max((step for step in steps if step is not None), default=None)
    if newest is None:
        return None
    try:
        saved = read_saved(steps[newest] / SETTINGS, from_yaml)
    except (UserError, OSError):  # the command reports it if it needs the checkpoint
        return config
    open_names = [name for name in DERIVED if name not in config.own.keep]
    open_names += [name for name in OF_THE_FEATURE if name not in given]
    values = {name: value_of(saved, name) for name in open_names}
    if saved.data.train != config.data.train:  # another text
        values |= {name: language for name, language in languages_of_names(config).items() if name in open_names}
    return with_values(config, values)


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
