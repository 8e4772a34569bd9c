"""What a feature declares: the whole interface between the core and features.

A feature adds to the core without being known to it: the core asks `nmt.discovery.features()` for what all of them
declare. A declaration names code as `module:name`, which is imported when it is first used, so that listing the
features, checking settings and printing help import neither torch nor any optional package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple


class Command(NamedTuple):
    """One word of the command line."""

    module: str
    """Module whose `run(config)` is the command."""
    summary: str
    """One line of help."""
    settings: tuple[str, ...]
    """Groups and single settings that the command reads; its help lists them."""
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
    owns: str = ""
    """What no other process may change meanwhile: corpus, run or nothing."""
    corpus: bool = True
    """Whether the prepared corpus is fetched if paths.data is an address."""
    weights: str = "named"
    """The weights that are fetched if paths.outputs is an address: those of the checkpoints that the settings name
    (named), of the newest one, with its training state (newest), of all (all), or nothing of the run (none)."""


COMMON = ("name", "seed", "paths", "runtime")
"""Settings that nearly every command reads."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a feature adds to the core."""

    summary: str
    """A few words for the help."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Optional packages without which it or a part of it cannot run: what pip installs, by the name to import."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """By the word on the command line."""
    test_sets: Mapping[str, str] = field(default_factory=dict)
    """By the word before the colon in data.valid and data.test, the `nmt.data.sources.source.Source` of the sets."""
    file_formats: tuple[FileFormat, ...] = ()
    """Further formats of files of parallel text."""
    columns: tuple[str, ...] = ()
    """Values beside the two sides of the training text, each a `nmt.data.columns.Column`."""
    filters: tuple[str, ...] = ()
    """Further filters of the training text, each a `nmt.data.filters.Filter`."""
    text_tasks: tuple[str, ...] = ()
    """What preparation writes or finds out once it has the text, each a `nmt.data.text_task.TextTask`."""
    mixing: str = ""
    """A `nmt.data.training_text.Mixing`, if there are further corpora."""
    transform: str = ""
    """The same for a `nmt.data.transform.BatchTransform`; the function takes the tokenizer as well."""
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
    watches_runs: str = ""
    """A function that takes a `nmt.config.swept_run.SweptRun` of a command that trains, and a function that does this
    run and returns its settings; it calls the latter, and returns the number that a search optimises, or None."""

    def __post_init__(self) -> None:
        """Check that each field holds what the core iterates over, because types are not checked at run time."""
        for each in fields(self):
            kind = Mapping if each.default_factory is dict else type(each.default) if each.default == () else str
            if not isinstance(given := getattr(self, each.name), kind):
                raise TypeError(f"{each.name} of a Feature is a {kind.__name__}, not {given!r}")
