"""`nmt COMMAND [overrides]`: start a command, print help, and turn errors into messages and exit codes."""

import os
import signal
import sys
import textwrap
import time
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from nmt import __version__
from nmt.commands import COMMANDS, MAIN_SETTINGS, Command
from nmt.errors import (
    CLOSED_PIPE,
    INTERRUPTED,
    USER_ERROR,
    CommonError,
    UserError,
    explained,
    is_full_disk,
    nearest,
)
from nmt.launched import is_main_process, launched_rank

if TYPE_CHECKING:
    from nmt.config.tree import Config

_ALL = "--help=all"
_HELP = ("-h", "--help", _ALL)
MAX_SETTINGS = 30
"""The most settings that the help of a command describes unless it is asked for all."""
SECONDS_FOR_FIRST_RANK = 1
"""How long other ranks leave the first one to print an error that all share: torchrun ends it when one exits."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; print errors that the user can fix as one line."""
    try:
        _run(list(sys.argv[1:] if arguments is None else arguments))
        print(end="", flush=True)  # nothing if standard output is closed
    except BrokenPipeError:
        _discard_output()
        return CLOSED_PIPE
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # exit immediately on a second interrupt
        print("nmt: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        errors = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        if None in (known := list(map(explained, errors))):
            raise
        for each in filter(None, known):
            _print_error(each)
        if is_full_disk(error):
            _discard_output()
        return USER_ERROR
    return 0


def _discard_output() -> None:
    """Silence Python's flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> None:
    if not words:
        raise UserError(f"name a command: {', '.join(COMMANDS)}; `nmt --help` describes them")
    name, *overrides = words
    if name in _HELP:
        print(_usage())
    elif name == "--version" or (name in COMMANDS and "--version" in overrides):
        print(f"nmt {__version__}")
    elif name not in COMMANDS:
        raise UserError(f"there is no command {name}; {nearest(name, COMMANDS)}")
    elif any(word in _HELP for word in overrides):
        if is_main_process():
            _print_command_usage(name, overrides)
    elif COMMANDS[name].distributed or is_main_process():
        _start(name, COMMANDS[name], overrides)


def _start(name: str, command: Command, words: list[str]) -> None:
    """Run a command once, or as Hydra's flags say."""
    from nmt.commands.local_copies import run_command  # noqa: PLC0415 - slow, and `nmt --help` does not need it
    from nmt.config.compose import parse, run_with_hydra  # noqa: PLC0415

    def run(config: "Config", given: frozenset[str], is_search: bool) -> float | None:
        run_command(command, completed(config, given, may_fetch=command.prepares))
        return _best_loss(config) if is_search else None

    line = parse([*command.defaults, *words])
    if command.composes and not any(word.startswith(("--cfg", "--info")) for word in line.of_hydra):
        if line.of_hydra:
            raise UserError(f"`nmt {name}` does several runs itself: leave out {line.of_hydra[0]}")
        import_module(command.module).run(line.settings)
    elif line.of_hydra:
        run_with_hydra(line, run)
    else:
        run_command(command, composed_settings(line.settings, may_fetch=command.prepares))


def _best_loss(config: "Config") -> float:
    """Return the lowest validation loss of a run, which a search compares."""
    from nmt.runs.layout import RunLayout  # noqa: PLC0415 - slow, and `nmt --help` does not need it
    from nmt.runs.tracker import read_metrics  # noqa: PLC0415

    events = read_metrics(RunLayout(config.run_folder).metrics)
    losses = [loss for each in events if each.event == "valid" and (loss := each.number("loss")) is not None]
    if not losses:
        raise UserError(f"the run {config.name} has no finite validation loss to search by: lower training.valid_every")
    return min(losses)


def composed_settings(overrides: list[str], *, may_fetch: bool = False) -> "Config":
    """Return the settings that the overrides give, completed with those that they leave open."""
    from nmt.config.compose import compose, given_settings  # noqa: PLC0415 - slow, and `nmt --help` does not need it

    return completed(compose(overrides), given_settings(overrides), may_fetch=may_fetch)


def completed(config: "Config", given: frozenset[str], *, may_fetch: bool = False) -> "Config":
    """Return the settings with values for those that the user leaves open; refuse given ones that have no effect.

    Only a command that prepares the text may fetch it to measure it.
    """
    from nmt.own_text.complete import with_values_for_text  # noqa: PLC0415 - slow, and not for `nmt --help`
    from nmt.serving.command import check_served_models  # noqa: PLC0415

    if config.training.init_from and "model" not in given:
        from nmt.runs.origin import with_shape_of_origin  # noqa: PLC0415 - imports torch

        config = with_shape_of_origin(config, given)
    config = with_values_for_text(config, given, may_fetch=may_fetch)
    if config.serve.models:
        check_served_models(given)
    return config


def _print_error(error: UserError) -> None:
    """Print an error that all ranks share on the first rank only; any other names its rank."""
    # quoted names and file contents may contain line breaks and terminal control characters
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(error))
    if is_main_process():
        print(f"nmt: {text}", file=sys.stderr)
    elif isinstance(error, CommonError):
        time.sleep(SECONDS_FOR_FIRST_RANK)
    else:
        print(f"nmt: rank {launched_rank()}: {text}", file=sys.stderr)


def _usage() -> str:
    commands = "\n".join(f"  {name:10} {command.summary}" for name, command in COMMANDS.items())
    return (
        "usage: nmt COMMAND [KEY=VALUE ...] [GROUP=NAME ...]\n\n"
        f"commands:\n{commands}\n\n"
        "`nmt COMMAND --help` lists the main settings of a command, and --help=all each of them.\n"
        "`nmt COMMAND -m KEY=A,B` runs it once per value: in turn, or as hydra/launcher=... says.\n"
        "`nmt COMMAND --cfg job` prints the settings, and --info defaults the files that they come from.\n"
        "Files in conf/experiment/ here, or in the folder of --config-dir, are experiments, too.\n"
        "Without settings, commands use the paper's base model on WMT14 English-German;\n"
        "`nmt demo` runs the whole chain in minutes."
    )


def _print_command_usage(name: str, words: list[str]) -> None:
    """Print the help of a command, with the values that the other words on the line give its settings."""
    from nmt.config.compose import compose, options, parse  # noqa: PLC0415 - slow, and `nmt --help` does not need it
    from nmt.config.keys import EXPERIMENT, all_keys, value_of, written  # noqa: PLC0415

    command, line = COMMANDS[name], parse([word for word in words if word not in _HELP])
    config = compose([*command.defaults, *line.single])
    print(f"usage: nmt {name} [KEY=VALUE ...] [GROUP=NAME ...]\n\n{name}: {command.summary}\n")
    print("groups (a name sets several settings):")
    for group in (EXPERIMENT, *command.settings):
        if files := options(group):
            print(_wrap(f"{group}=", ", ".join(files)))
    keys = [
        key
        for key in all_keys().values()
        if key.name in command.settings or key.name.partition(".")[0] in command.settings
    ]
    in_full = _ALL in words or len(keys) <= MAX_SETTINGS
    shown = keys if in_full else [key for key in keys if key.name in MAIN_SETTINGS]
    print("\nsettings (type, value with these words; * may change when a run is resumed):")
    for key in shown:
        value = written(value_of(config, key.name)) or "empty"
        print(f"{'*' if key.adjustable else ' '} {key.name} ({key.type}, {value})")
        print(_wrap("", key.meaning if in_full else key.meaning.partition(". ")[0]))
    if len(shown) < len(keys):
        print(f"\n`nmt {name} {_ALL}` describes {len(keys) - len(shown)} more, and `--cfg job` prints all values.")
    print("\nEvery command accepts the settings of all others, so the same overrides serve the whole chain;")
    print(f"`nmt {name} experiment=multi30k --help` shows the values of an experiment.")


def _wrap(head: str, text: str) -> str:
    return textwrap.fill(text, 110, initial_indent=f"  {head:14}", subsequent_indent=" " * 16)
