"""One-line error messages for whatever Hydra, OmegaConf and YAML raise about settings."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import yaml
from hydra.errors import HydraException
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from nmt import DISTRIBUTION
from nmt.config.conf_folder import EXPERIMENT, own_folders, shown_path
from nmt.config.keys import all_keys, unknown_setting
from nmt.errors import ConfigError

_PLUG_INS = {
    "hydra/launcher": ("cluster", ("joblib", "submitit_local", "submitit_slurm")),
    "hydra/sweeper": ("search", ("search",)),
}
"""The extra of the package that installs plug-ins, and what it adds to basic, by their group."""


@contextmanager
def one_line_errors(overrides: Sequence[str] = ()) -> Iterator[None]:
    """Turn an error about settings into a ConfigError of one line: where, what, and what to do.

    Args:
        overrides: The overrides of the command line, of which the message quotes the wrong one.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(f"{', '.join(_files_not_in_utf8())}: this is not UTF-8; save it in that encoding") from error
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        raise ConfigError(_explain(error, overrides)) from error


def _explain(error: BaseException, overrides: Sequence[str]) -> str:
    file = _file_prefix(str(error))
    cause = _omegaconf_cause(error)
    key = cause.full_key or "" if cause else ""
    if key.partition(".")[0] == EXPERIMENT:
        return f"{file}{key} is not a setting: make `# @package _global_` the first line, and name groups: `model:`"
    if key and key not in all_keys():
        return file + unknown_setting(key)
    if message := _about_plug_ins(str(error)):
        return message
    if cause is None or not key:
        return file + " ".join(str(cause or error).partition("full_key:")[0].split())
    blamed = next((text for text in reversed(overrides) if text.lstrip("+").startswith(f"{key}=")), key)
    reason = str(cause).splitlines()[0]
    if isinstance(cause, InterpolationResolutionError):
        return f"{file}{blamed} cannot be resolved: {reason}"
    return f"{file}{blamed} must be {all_keys()[key].in_words}" + (f" ({reason})" if blamed == key else "")


def _about_plug_ins(error: str) -> str:
    """Return what to do if an error of Hydra is about its sweeper or launcher, else nothing."""
    if "INTERVAL_SWEEP" in error:
        return "interval(...) needs a search, such as hydra/sweeper=search; otherwise list the values: a,b,c"
    for group, (extra, names) in _PLUG_INS.items():
        if found := re.search(f"'{group}/([^']*)'", error):
            how = (
                f"`pip install {DISTRIBUTION}[{extra}]` installs it"
                if found[1] in names
                else f"choose from basic, {', '.join(names)}"
            )
            return f"{group}={found[1]} is not known or not installed: {how}"
    return ""


def _omegaconf_cause(error: BaseException) -> OmegaConfBaseException | None:
    """Return the first OmegaConf error in the chain of causes; only these name the key."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__ or cause.__context__
    return cause


def _files_not_in_utf8() -> Iterator[str]:
    """Yield the files of settings of the user that are not UTF-8, because Hydra does not name them."""
    for file in sorted(file for folder in own_folders() for file in folder.rglob("*.yaml")):
        try:
            file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            yield str(file)
        except OSError:
            continue


def _file_prefix(message: str) -> str:
    """Return the file that Hydra blames (`In 'model/big': ...`) as the beginning of a message."""
    found = re.match(r"In '([^']*)", message)
    return f"{shown_path(found[1])}: " if found else ""
