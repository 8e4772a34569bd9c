"""What a feature declares, and the features that are there: each folder of `nmt/features/`, and installed extensions.

A feature adds to the core without being known to it: the core asks `features()` for what all of them declare. A
declaration names code as `module:name`, which is imported when it is first used, so that listing the features, checking
settings and printing help import neither torch nor any optional package.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

import nmt.features
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "nmt.features"
"""The group of entry points by which other packages name their declarations: `name = "module:FEATURE"`."""
VERSION_CHECK = "nmt.versions:check_requirements"
"""A function that takes the requirements of an extension, and raises a ConfigError if they exclude this version."""


class Command(NamedTuple):
    """One word of the command line."""

    module: str
    """Module whose `run(config)` is the command."""
    summary: str
    """One line of help."""
    settings: tuple[str, ...]
    """Groups and single settings that the command reads; its help and completion list them."""
    defaults: tuple[str, ...] = ()
    """Overrides that come before the user's, so the user's win."""
    composes: bool = False
    """True if `run` takes the overrides instead of one Config, because it composes several runs from them."""
    trains: bool = False
    """True if it trains runs, which a sweep over settings of the machine must not mix."""
    takes_model: str = ""
    """The setting that names the folder of another program's model, if the command makes a run of it."""
    distributed: bool = False
    """True if all processes of torchrun take part; any other command runs on the first process only."""
    ends_chain: bool = False
    """True if `all` runs it after the evaluation."""


COMMON = ("name", "seed", "paths", "runtime")
"""Settings that nearly every command reads."""
TASKS = "data.target_lang"
"""The setting whose value selects the task: one of a feature, or text in the language that it names."""


class Choice(NamedTuple):
    """One implementation of what a setting such as `model.positions` names."""

    code: str
    """`module:attribute`."""
    meaning: str
    """A few words for the help."""
    brings: tuple[str, ...] = ()
    """What a source of text has without files that the settings name: `text`, and further columns by name."""


class FileFormat(NamedTuple):
    """A format of files of parallel text, which hold one side or both."""

    name: str
    endings: tuple[str, ...]
    """Endings of file names, in lower case; those of compressed files may follow."""
    pairs: str = ""
    """`module:function` that yields the pairs of a file, given its path, the languages and the columns
    (`nmt.data.sources.source.Columns`) that the user names; empty if a file holds one side."""
    sentences: str = ""
    """The same for the sentences of a file that holds one side, given its path and its language."""
    shards: tuple[str, ...] = ()
    """Endings by which shards of a split are found in a folder, those of compressed files included."""


class Group(NamedTuple):
    """Settings of a feature: a group of their own, or further ones in a group of the core."""

    code: str
    """`module:class`: a frozen dataclass without slots, in a module that imports nothing but checks of settings."""
    adjustable: bool = True
    """Whether all of them may change when a run is resumed; if not, the fields say it one by one."""
    commands: tuple[str, ...] = ()
    """Commands of the core that list a group of the feature's own in their help."""
    main_process_only: bool = False
    """Whether only the main process reads a group of the feature's own, which may differ in other processes."""
    searchable: bool = True
    """Whether a search may vary a group of the feature's own, because the result of a run may depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a feature adds to the core."""

    summary: str
    """A few words for `nmt features`."""
    page: str = ""
    """Where it is documented: a file, or a heading in one, as a link names it."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Optional packages without which it or a part of it cannot run: what pip installs, by the name to import."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """By the word on the command line."""
    settings: Mapping[str, Group] = field(default_factory=dict)
    """By the name of the group; "" is for settings in no group."""
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)
    """By setting, then by the value that names the code."""
    tasks: Mapping[str, Choice] = field(default_factory=dict)
    """By the value of `data.target_lang` that selects it, each a `nmt.data.task.Task`."""
    check: str = ""
    """A function that takes all settings and raises a ConfigError if those of the feature contradict others."""
    uses: str = ""
    """A function that takes all settings and yields what those of the feature need: see `nmt.config.capabilities`."""
    term: str = ""
    """A function that takes all settings and returns a `nmt.training.objective.Term`, or None if it is off."""
    word_loss: str = ""
    """The same for a `nmt.training.objective.WordLoss`; a run has one of them at most."""
    test_sets: Mapping[str, str] = field(default_factory=dict)
    """By the word before the colon in data.valid and data.test, the `nmt.data.sources.source.Source` of the sets."""
    file_formats: tuple[FileFormat, ...] = ()
    """Further formats of files of parallel text."""
    addresses: str = ""
    """A `nmt.storage.addresses.Addresses`, by which names of files may be addresses such as s3://bucket/file."""
    columns: tuple[str, ...] = ()
    """Values beside the two sides of the training text, each a `nmt.data.columns.Column`."""
    filters: tuple[str, ...] = ()
    """Further filters of the training text, each a `nmt.data.filters.Filter`."""
    text_tasks: tuple[str, ...] = ()
    """What preparation writes or finds out once it has the text, each a `nmt.data.text_task.TextTask`."""
    corpora: str = ""
    """A function that takes the settings of the data and returns further corpora: see `nmt.config.schema.corpora`."""
    mixing: str = ""
    """A `nmt.data.training_text.Mixing`, if there are further corpora."""
    transform: str = ""
    """The same for a `nmt.data.transform.BatchTransform`; the function takes the tokenizer as well."""
    hook: str = ""
    """The same for a `nmt.training.hook.TrainingHook`."""
    layers: str = ""
    """A function that takes the settings of the model and a `nmt.model.run_layer.RunLayer`, and returns one."""
    cost: str = ""
    """A function that takes the settings of training and returns a `nmt.estimate.cost.Cost`."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """By the name of the metric, `module:name` of a `nmt.evaluation.metric.Metric`."""
    findings: Mapping[str, str] = field(default_factory=dict)
    """By the key in eval/<split>.json, `module:name` of a `nmt.evaluation.finding.Finding`."""
    control: str = ""
    """A function that takes a `nmt.decoding.control.SearchSetup` and returns a Control, or None if it is off."""
    details: Mapping[str, str] = field(default_factory=dict)
    """By the name in `Candidate.details`, `module:name` of a `nmt.decoding.detail.DetailOption`."""
    search_settings: str = ""
    """A function that takes the settings of decoding and returns those of the search itself, if they are others."""
    search_in_words: str = ""
    """A function that takes the settings of decoding and names the search for reports; empty if it is another one's."""
    adapts_search: str = ""
    """A function that takes the settings of a search and those of the model's run, and returns the first, adapted."""
    listeners: tuple[str, ...] = ()
    """Functions that take all settings and the number of updates so far and return a `nmt.runs.listener.Listener`,
    or None if it is off."""
    sections: tuple[str, ...] = ()
    """Functions that take a `nmt.runs.section.ShownRun` and return a Section of its page, or None."""
    completes_settings: str = ""
    """A function that takes all settings and the names of those that the user gives, and returns all settings, in which
    it may replace values that the user does not give."""
    tokenizer: str = ""
    """A function that takes all settings and returns a `nmt.data.earlier_tokenizer.EarlierTokenizer`, or None."""
    begins: str = ""
    """A function that takes all settings and returns a `nmt.training.beginning.Beginning`, or None."""
    watches_runs: str = ""
    """A function that takes a `nmt.config.multirun.SweptRun` and a function that does this run and returns its
    settings, calls the latter, and returns the number that a search optimises, or None."""
    prepares_training: str = ""
    """A function that may change the settings of a run before training: see `nmt.training.preparation`."""

    @property
    def all_choices(self) -> dict[str, Mapping[str, Choice]]:
        """The values that it adds to settings, by setting; those that select a task are among them."""
        return {**self.choices, **({TASKS: self.tasks} if self.tasks else {})}


class Extension(NamedTuple):
    """A feature of another package."""

    name: str
    package: str
    """The distribution that contains it."""
    version: str
    feature: Feature | None
    """None if it is broken."""
    problem: str = ""
    """Why it is broken."""

    def __str__(self) -> str:
        return f"{self.name} ({self.package} {self.version})"


@cache
def features() -> Mapping[str, Feature]:
    """Return the features by name: those of this package, then the extensions that work."""
    return own_features() | {each.name: each.feature for each in extensions() if each.feature}


@cache
def own_features() -> dict[str, Feature]:
    """Return the features of this package by name."""
    names = sorted(each.name for each in iter_modules(nmt.features.__path__) if each.ispkg)
    return {name: import_module(f"nmt.features.{name}").FEATURE for name in names}


def extensions() -> tuple[Extension, ...]:
    """Return the features that other installed packages declare; name each broken one on standard error."""
    return tuple(_found())


def turn_off(name: str, error: Exception) -> None:
    """Treat an extension as broken from now on, because of something that was found out when it was used."""
    found = _found()
    index, old = next((index, each) for index, each in enumerate(found) if each.name == name and each.feature)
    found[index] = _broken(name, old.package, old.version, error)
    features.cache_clear()


@cache
def _found() -> list[Extension]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and few modules need the features

    found: list[Extension] = []
    for point in sorted(entry_points(group=ENTRY_POINTS)):
        found.append(_loaded(point, own_features() | {each.name: each.feature for each in found if each.feature}))
    return found


def _loaded(point: "EntryPoint", others: Mapping[str, Feature]) -> Extension:
    """Import the declaration of an extension. Its settings are checked when settings are used."""
    package = (point.dist.name, point.dist.version) if point.dist else ("", "")
    try:
        if point.dist:
            imported(VERSION_CHECK)(point.dist.requires or [])
        feature = point.load()
        if not isinstance(feature, Feature):
            raise TypeError(f"{point.value} is not a nmt.feature.Feature")
        _check_names(point.name, feature, others)
    except Exception as error:  # code of others may raise anything, and must not stop what does not use it
        return _broken(point.name, *package, error)
    return Extension(point.name, *package, feature)


def _broken(name: str, package: str, version: str, error: Exception) -> Extension:
    """Return a broken extension, and name it on standard error."""
    kind = "" if isinstance(error, ConfigError) else f"{type(error).__name__}: "
    problem = f"{kind}{' '.join(str(error).split())}; update or uninstall it"
    extension = Extension(name, package, version, None, problem)
    if os.environ.get("RANK", "0") == "0":
        print(f"nmt: the extension {extension} is off: {extension.problem}", file=sys.stderr)
    return extension


def _check_names(name: str, feature: Feature, others: Mapping[str, Feature]) -> None:
    """Refuse an extension that gives a name of another feature another meaning."""
    if name in others:
        raise ConfigError(f"there is another feature {name}")
    taken = {key for other in others.values() for key in _names_of(other)}
    if twice := sorted(taken.intersection(_names_of(feature))):
        raise ConfigError(f"another feature has {twice[0]} too")


def _names_of(feature: Feature) -> Iterator[str]:
    """Yield what a feature adds to the command line and the scores, as a user writes it."""
    yield from (f"the command {name}" for name in feature.commands)
    yield from (f"the metric {name}" for name in feature.metrics)
    yield from (f"{setting}={value}" for setting, some in feature.all_choices.items() for value in some)


def _groups() -> list[tuple[str, Group]]:
    """Return what features add to groups of settings."""
    return [added for feature in features().values() for added in feature.settings.items()]


def learned_groups() -> tuple[str, ...]:
    """Return the groups of settings of features that decide what a run learns."""
    return tuple(name for name, group in _groups() if not group.adjustable)


def groups_listed_by(command: str) -> tuple[str, ...]:
    """Return the groups of settings of features that the help of a command of the core lists."""
    return tuple(name for name, group in _groups() if command in group.commands)


def main_process_groups() -> tuple[str, ...]:
    """Return the groups of settings of features that only the main process reads."""
    return tuple(name for name, group in _groups() if group.main_process_only)


def unsearchable_groups() -> tuple[str, ...]:
    """Return the groups of settings of features on which the result of no run depends."""
    return tuple(name for name, group in _groups() if group.main_process_only or not group.searchable)


def imported(code: str) -> Any:
    """Return what `module:name` names."""
    module, _, name = code.partition(":")
    return getattr(import_module(module), name)
