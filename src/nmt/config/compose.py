"""Compose `conf/` and the words of a command line into one frozen, checked Config, with Hydra.

The user's own folders of settings come before the package's `conf/`, so a file in them can add a name or replace one.
Hydra's own flags print settings, or run a command once per combination of values. Every mistake in a setting becomes a
ConfigError of one line.
"""

import logging
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import hydra
import yaml
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from nmt import DISTRIBUTION
from nmt.config import registry
from nmt.config.checks import MAX_NAME_CHARACTERS
from nmt.config.folders import local_folder
from nmt.config.keys import EXPERIMENT, all_keys, settings_name, unknown_setting, value_of
from nmt.config.saved import to_config
from nmt.config.tree import Config
from nmt.errors import ConfigError, explained, nearest

ROOT = "nmt"
"""The name of the file in `conf/` that chooses all others."""
CONFIG_DIR = "NMT_CONFIG_DIR"
"""The environment variable that names the user's folder of settings; `--config-dir` sets it."""
LEARNED_GROUPS = ("data", "tokenizer", "model", "noise", "own", "training", "seed")
"""Groups of settings that decide what a run learns. All commands name a run by them, so that they find it again."""
_OF_HYDRA = re.compile(r"[+~]*hydra[./]")
_HOME = re.compile(r"(?<=[=\[,])~/[^,\]]*")


class OwnFolders(SearchPathPlugin):
    """Puts the user's folders of settings before the package's."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folders, the first of which wins."""
        for folder in own_folders():
            search_path.prepend(provider="own", path=f"file://{folder}", anchor="main")


@cache
def conf_folder() -> Path:
    """Return `conf/`: inside an installed package, or at the top of the repository."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


def own_folders() -> list[Path]:
    """Return the user's folders of settings, the first of which wins: the one that is named, and `conf/` here."""
    named = os.environ.get(CONFIG_DIR)
    if named and not Path(named).is_dir():
        raise ConfigError(f"there is no folder {named}: correct --config-dir, or {CONFIG_DIR}")
    found = [Path(each).resolve() for each in (named, "conf") if each and Path(each).is_dir()]
    return [each for each in dict.fromkeys(found) if each != conf_folder()]


def options(group: str) -> list[str]:
    """Return the names of the files in a group, as they are written on the command line."""
    folders = [folder / group for folder in (*own_folders(), conf_folder())]
    return sorted({f.relative_to(each).with_suffix("").as_posix() for each in folders for f in each.rglob("*.yaml")})


@cache
def register() -> None:
    """Register with Hydra the defaults of all settings, and what finds the user's folders."""
    schema = OmegaConf.create(asdict(Config()))
    OmegaConf.set_struct(schema.data.mixture, value=False)  # the user names the corpora in it
    ConfigStore.instance().store("schema", schema, provider="nmt")
    # a launcher may have brought the functions to this process
    OmegaConf.register_new_resolver("folder_name", _folder_name, replace=True)
    OmegaConf.register_new_resolver("local_folder", lambda name: str(local_folder(name)), replace=True)
    Plugins.instance().register(OwnFolders)


def _folder_name(path: str) -> str:
    """Return the name of a folder, as a name for a run; the usual name if no folder is given."""
    return Path(path).resolve().name if path else Config().name


def compose(overrides: Sequence[str]) -> Config:
    """Return the settings that `conf/` and these overrides (`training.steps=3`, `model=big`) give."""
    register()
    parsed = _parsed(overrides)
    values = [each for each in parsed if each.key_or_group in all_keys() and _is_plain(each)]
    others = tuple(str(each.input_line) for each in parsed if each not in values)
    with _one_line_errors():
        tree = deepcopy(_of_files(others, tuple(own_folders())))
        for each in values:
            OmegaConf.update(tree, each.key_or_group, each.value())
        return _checked(tree)


def _is_plain(override: Override) -> bool:
    """Return whether an override replaces one value by another, and does not sweep over several."""
    return override.type == OverrideType.CHANGE and override.package is None and not override.is_sweep_override()


@cache
def _of_files(overrides: tuple[str, ...], folders: tuple[Path, ...]) -> DictConfig:
    """Return what Hydra composes from files; it takes a tenth of a second, and `nmt all` and `table3` do it often.

    Args:
        overrides: The choices of files, and what else only Hydra can apply.
        folders: The user's folders, which Hydra finds itself, because the result depends on them.
    """
    outer, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # that of a job, which may compose, too
    try:
        with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
            return hydra.compose(ROOT, overrides=list(overrides))
    finally:
        GlobalHydra.instance().hydra = outer


def _checked(tree: DictConfig) -> Config:
    """Return what Hydra has composed as a frozen, checked Config; code that it names, mine:Lion, may be imported."""
    with open_dict(tree):
        tree.pop("hydra", None)
    config: Config = to_config(OmegaConf.to_container(tree, resolve=True))
    for setting in registry.CHOICES:
        if ":" in (value := value_of(config, setting)):
            registry.trusted.add((setting, value))
    return config


def given_settings(overrides: Sequence[str]) -> frozenset[str]:
    """Return the settings and groups (`training.steps`, `model`) that these overrides name, without their values."""
    return frozenset(str(each.key_or_group) for each in _parsed(overrides))


def _parsed(overrides: Sequence[str]) -> list[Override]:
    with _one_line_errors():
        return OverridesParser.create().parse_overrides(list(overrides))


class Words(NamedTuple):
    """The words of a command line."""

    settings: list[str]
    """Overrides of settings."""
    of_hydra: list[str]
    """Hydra's flags, and overrides of Hydra itself."""

    @property
    def parsed(self) -> list[tuple[str, Override]]:
        """The overrides of settings, each as it is written and as Hydra reads it."""
        return list(zip(self.settings, _parsed(self.settings), strict=True))

    @property
    def single(self) -> list[str]:
        """The overrides of settings that give one value."""
        return [word for word, override in self.parsed if not override.is_sweep_override()]


def parse(words: Sequence[str]) -> Words:
    """Separate Hydra's flags, which may stand anywhere, from the settings; use the folder of `--config-dir`."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _refuse  # type: ignore[method-assign] # it would print the usage in several lines
    parser.add_argument("-m", "--multirun", action="store_true")
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-p", "--package")
    infos = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
    parser.add_argument("-i", "--info", nargs="?", const="all", choices=infos)
    parser.add_argument("-cd", "--config-dir")
    parser.add_argument("overrides", nargs="*")
    found = parser.parse_intermixed_args(list(words))
    if found.config_dir is not None:
        os.environ[CONFIG_DIR] = os.path.abspath(found.config_dir)  # noqa: PTH100 - also for the processes it starts
    flags = [f"--{name}" for name in ("multirun", "resolve") if getattr(found, name)]
    flags += [f"--{name}={value}" for name in ("cfg", "package", "info") if (value := getattr(found, name))]
    # Hydra's grammar refuses paths that begin with ~ unless they are quoted; they are expanded where they are used
    quoted = [word if {"'", '"'} & {*word} else _HOME.sub(r"'\g<0>'", word) for word in found.overrides]
    of_hydra = [word for word in quoted if _OF_HYDRA.match(word)]
    return Words([word for word in quoted if word not in of_hydra], [*flags, *of_hydra])


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}; settings are written key=value, without dashes, and `nmt --help` names the flags")


def run_with_hydra(words: Words, run: Callable[[Config, frozenset[str], bool], float | None]) -> None:
    """Let Hydra do what its flags say: print settings, or run a command once, or per combination of values.

    Args:
        words: The words of the command line.
        run: Runs the command, given its settings, the names of those that the user gives, and whether this is a search.
            Returns what a search compares.
    """
    register()
    both = words.parsed
    swept = {each.key_or_group for _, each in both if each.is_sweep_override()}
    # the last word wins, as elsewhere: Optuna would keep to a single value, wherever it stands
    settings = {each.key_or_group if each.key_or_group in swept else word: word for word, each in both}.values()
    failed, process = list[Exception](), os.getpid()

    def job(tree: DictConfig) -> float | None:
        of_hydra = HydraConfig.get()
        given = of_hydra.overrides.task
        is_search = of_hydra.mode == RunMode.MULTIRUN and not of_hydra.sweeper._target_.endswith(".BasicSweeper")
        values = {each.key_or_group: each.get_value_string() for each in _parsed(given) if each.key_or_group in swept}
        try:
            return run(_named(_checked(tree), values), given_settings(given), is_search)
        except Exception as error:
            if (known := explained(error)) and values:
                known.args = (f"{' '.join(f'{key}={value}' for key, value in values.items())}: {known}",)
            if is_search or os.getpid() != process:
                raise
            # Hydra would print a line of its own; the other jobs run, without the memory that a traceback holds
            failed.append(type(known)(*known.args) if known else error)
            return None

    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise errors instead of printing them
    logging.raiseExceptions = False  # Hydra prints by logging, which would print a traceback per line to a closed pipe
    sys.argv = [sys.argv[0], *words.of_hydra, *settings]
    with _one_line_errors():
        hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=ROOT)(job)()
    if failed:
        raise failed[0] if len(failed) == 1 else ExceptionGroup("jobs failed", failed)


def _named(config: Config, values: Mapping[str, str]) -> Config:
    """Return the settings of one of several jobs with its values in the names of its run and of its corpus."""
    learned = {key: value for key, value in values.items() if key.partition(".")[0] in LEARNED_GROUPS}
    of_text = {key: value for key, value in learned.items() if key.startswith(("data.", "tokenizer"))}
    of_text.pop("data.corpus", None)
    if values.get(EXPERIMENT, config.name) != config.name:  # its own name tells its run from those of others
        learned[EXPERIMENT] = values[EXPERIMENT]
    data = replace(config.data, corpus=_joined(config.data.corpus, of_text))
    return replace(config, name=_joined(config.name, learned), data=data)


def _joined(name: str, values: Mapping[str, str]) -> str:
    """Return a name with values of settings at its end: demo-model.dropout_0.1."""
    room = MAX_NAME_CHARACTERS - len(name.rpartition("/")[2]) - 1
    return f"{name}-{settings_name(values, room)}" if values else name


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn whatever Hydra, OmegaConf and YAML raise about settings into a ConfigError of one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        raise ConfigError(_explain(error)) from error


def _explain(error: Any) -> str:
    text = " ".join(re.split(r"\s+full_key:|\nSee https", str(error))[0].split())
    match error:
        case MissingConfigException(missing_cfg_file=str(file)) if file.startswith("hydra/"):
            how = (
                f"`pip install '{DISTRIBUTION}[cluster,search]'` adds joblib, submitit_local, submitit_slurm and search"
            )
            return f"{'='.join(file.rsplit('/', 1))} is not known or not installed: {how}"
        case MissingConfigException(missing_cfg_file=str(file)) if "/" in file:
            group, _, name = file.partition("/")
            return f"there is no {group}={name}; {nearest(name, options(group))}"
        case OverrideParseException(override=str(word)):
            if "=" not in word:
                return f"cannot read {word!r}: settings are written key=value"
            how = "quote special characters twice, because the shell removes the outer quotes: \"key='a b, c=d'\""
            return f"cannot read {word!r} ({text}): {how}"
    if found := re.match(r"Could not override '([^']+)'", text):
        return unknown_setting(found[1])
    key = getattr(error, "full_key", None)
    return f"{key} cannot be resolved: {text}" if key else text
