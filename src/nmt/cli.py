"""`nmt COMMAND [overrides]`: start a command, print help, and turn errors into messages and exit codes."""

import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import __version__
from nmt.commands import COMMANDS
from nmt.compute import uptime  # noqa: F401 - imported first because its fallback measures from its own import
from nmt.errors import CommonError, UserError, for_this_installation, nearest
from nmt.feature import Command, features, imported

if TYPE_CHECKING:
    from nmt.config.schema import Config

_HELP = ("-h", "--help")
_MULTIRUN = ("-m", "--multirun")
_USER_ERROR, _INTERRUPTED, _CLOSED_PIPE = 2, 130, 141
"""Exit codes; the last two are those of a process that SIGINT or SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; print errors that the user can fix as one line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _replace_closed_streams()
    try:
        _run(words)
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # silence Python's flush at exit
        return _CLOSED_PIPE
    except (Exception, KeyboardInterrupt) as error:
        if _was_interrupted(error):
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # exit immediately on a second interrupt
            print("nmt: interrupted", file=sys.stderr)
            return _INTERRUPTED
        if isinstance(error, UserError):
            _print_error(error)
            return _USER_ERROR
        raise
    return 0


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether an error is an interrupt, or arose after one: OmegaConf's clean-up fails on half-made objects."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _replace_closed_streams() -> None:
    """Occupy the file descriptors of closed standard streams, so that no file opened later receives their output."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:  # only warnings and progress can go to /dev/null; commands report a missing input or output
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _run(words: list[str]) -> None:
    if not words:
        raise UserError(f"name a command: {', '.join(COMMANDS)}; `nmt --help` describes them")
    name, *overrides = words
    if name in _HELP:
        print(_usage())
    elif name == "--version":
        print(f"nmt {__version__}")
    elif name == "completion":
        _print_completion(overrides)
    elif name not in COMMANDS:
        raise UserError(f"there is no command {name}; {nearest(name, COMMANDS)}")
    elif any(word in _HELP for word in overrides):
        print(_command_usage(name, [word for word in overrides if word not in _HELP]))
    elif COMMANDS[name].distributed or os.environ.get("RANK", "0") == "0":
        _start(COMMANDS[name], overrides)


def _print_completion(words: list[str]) -> None:
    """Print the script for the shell's completion, or, when that script asks, the possible next words."""
    from nmt.config.completion import SCRIPT, complete  # noqa: PLC0415

    if words[:1] == ["--"]:
        settings = {name: command.settings for name, command in COMMANDS.items()}
        print("\n".join(complete(" ".join(words[1:]), settings)))
    else:
        print(SCRIPT, end="")


def _start(command: Command, overrides: list[str]) -> None:
    """Run a command once, or with -m once per combination of the given values."""
    module, words = import_module(command.module), [word for word in overrides if word not in _MULTIRUN]
    words = [*command.defaults, *words]
    if command.composes:
        module.run(words)
    elif any(word in _MULTIRUN for word in overrides):
        from nmt.config.multirun import RUN_GROUPS, multirun  # noqa: PLC0415

        groups = (*RUN_GROUPS, "runtime") if command.trains else RUN_GROUPS
        multirun(partial(_run_composed, command.module), words, run_groups=groups)
    else:
        module.run(_composed(words))


def _run_composed(module: str, overrides: list[str]) -> None:
    """Do one run of a multirun, perhaps in another process."""
    import_module(module).run(_composed(overrides))


def _composed(overrides: list[str]) -> "Config":
    """Return the settings that the overrides give; features may complete those that they leave open."""
    from nmt.config.compose import compose, given_settings  # noqa: PLC0415 - slow, and `nmt --help` does not need it

    config, given = compose(overrides), given_settings(overrides)
    for feature in features().values():
        if feature.completes_settings:
            config = imported(feature.completes_settings)(config, given)
    return config


def _print_error(error: UserError) -> None:
    """Print an error that all ranks share on the first rank only; any other names its rank."""
    rank = os.environ.get("RANK", "0")
    if rank == "0":
        print(f"nmt: {_printable(for_this_installation(str(error)))}", file=sys.stderr)
    elif not isinstance(error, CommonError):
        print(f"nmt: rank {rank}: {_printable(for_this_installation(str(error)))}", file=sys.stderr)


def _printable(text: str) -> str:
    """Escape line breaks and terminal control characters, which quoted names or file contents may contain."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _usage() -> str:
    commands = "\n".join(f"  {name:10} {command.summary}" for name, command in COMMANDS.items())
    return (
        "usage: nmt COMMAND [KEY=VALUE ...] [GROUP=NAME ...]\n\n"
        f"commands:\n{commands}\n\n"
        "`nmt COMMAND --help` lists the settings of a command; `nmt --version` prints the version.\n"
        '`eval "$(nmt completion)"` makes bash complete commands, settings and experiments.\n'
        "`nmt COMMAND -m KEY=A,B` runs it once per value: in turn, or as hydra/launcher=... says.\n"
        "Without settings, commands use the paper's base model on WMT14 English-German;\n"
        "`nmt demo` runs the whole chain in minutes."
    )


def _command_usage(name: str, overrides: list[str]) -> str:
    """Return the help of a command, with the values that the other overrides on the line give its settings."""
    from nmt.config.compose import compose  # noqa: PLC0415
    from nmt.config.conf_folder import groups, options  # noqa: PLC0415
    from nmt.config.keys import describe_keys, value_of, written  # noqa: PLC0415

    command = COMMANDS[name]
    chosen = [group for group in groups() if group == "experiment" or group in command.settings]
    given = [] if any(word in _MULTIRUN for word in overrides) else overrides
    config = compose([*command.defaults, *given])
    lines = [f"usage: nmt {name} [KEY=VALUE ...] [GROUP=NAME ...]", "", f"{name}: {command.summary}", ""]
    lines += ["groups (a name sets several settings):"]
    lines += [_wrap(f"{group}=", ", ".join(options(group))) for group in chosen]
    shown = "value with these overrides" if given else "default"
    lines += ["", f"settings (type, {shown}; * may change when a run is resumed):"]
    for key in (key for prefix in command.settings for key in describe_keys(prefix)):
        mark = "*" if key.adjustable else " "
        value = written(value_of(config, key.name)) or "empty"
        lines += [f"{mark} {key.name} ({key.type}, {value})", _wrap("", for_this_installation(key.meaning))]
    lines += ["", "Every command accepts the settings of all others, so the same overrides serve the whole chain;"]
    lines += [f"`nmt {name} experiment=multi30k --help` shows the values of an experiment."]
    return "\n".join(lines)


def _wrap(head: str, text: str) -> str:
    return textwrap.fill(text, 110, initial_indent=f"  {head:14}", subsequent_indent=" " * 16)
