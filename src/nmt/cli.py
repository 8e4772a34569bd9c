"""`nmt STAGE [overrides]`: the one door to every stage."""

import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from nmt import __version__
from nmt.compute import uptime  # noqa: F401 - early, as its fallback counts from its import
from nmt.errors import CommonError, UserError, nearest


class Stage(NamedTuple):
    """A stage: the module whose `run(config)` does it, what it does, and the settings it reads."""

    module: str
    summary: str
    settings: tuple[str, ...]
    first: tuple[str, ...] = ()
    """Overrides that come before the user's, and so give way to them."""
    many: bool = False
    """Composes several runs by itself: the module's `run` takes the overrides, not one configuration."""
    together: bool = False
    """Where torchrun starts several processes, all take part; any other stage is the first one's alone."""


_PLACES = ("name", "seed", "paths", "runtime")
STAGES = {
    "data": Stage("nmt.commands.data", "fetch, filter and tokenise a corpus", ("data", "tokenizer", *_PLACES)),
    "train": Stage(
        "nmt.commands.train",
        "train a model, or go on training it",
        ("model", "training", "tracking", *_PLACES),
        together=True,
    ),
    "batch": Stage(
        "nmt.commands.batch", "show the sentences that a step trained on", ("step", "training.batch_tokens", *_PLACES)
    ),
    "average": Stage("nmt.commands.average", "average checkpoints", ("averaging", *_PLACES)),
    "eval": Stage(
        "nmt.commands.evaluate",
        "translate and score",
        ("checkpoint", "engine", "evaluation", "decoding", "tracking", *_PLACES),
        together=True,
    ),
    "translate": Stage(
        "nmt.commands.translate",
        "translate a file or standard input",
        ("checkpoint", "engine", "input", "output", "format", "prefix", "decoding", *_PLACES),
    ),
    "score": Stage(
        "nmt.commands.score",
        "say how probable given translations are",
        ("checkpoint", "engine", "input", "output", "decoding", *_PLACES),
    ),
    "export": Stage(
        "nmt.commands.export",
        "make a trained model into what other programs use",
        ("checkpoint", "export", "input", "decoding", *_PLACES),
    ),
    "report": Stage(
        "nmt.commands.report",
        "write a page on a run, or on several",
        ("compare", "checkpoint", "engine", "output", *_PLACES),
    ),
    "compare": Stage("nmt.commands.compare", "print how runs differ", ("compare", "checkpoint", "engine", "paths")),
    "attention": Stage(
        "nmt.commands.attention",
        "draw where a model looks, as a PNG",
        ("attention", "checkpoint", "input", "output", "decoding", *_PLACES),
    ),
    "demo": Stage(
        "nmt.commands.demo",
        "run all of these on text that needs no download",
        ("training", *_PLACES),
        ("experiment=demo",),
        together=True,
    ),
    "table3": Stage(
        "nmt.commands.table3",
        "train and score the rows of the paper's Table 3",
        ("rows", "scale", "training", "paths", "runtime"),
        many=True,
        together=True,
    ),
    "describe": Stage(
        "nmt.commands.describe",
        "say what a run will cost, before it runs",
        ("output", "device", "gpus", "model", "training"),
    ),
}

_HELP = ("-h", "--help")
_MULTIRUN = ("-m", "--multirun")
_BAD_INPUT, _INTERRUPTED, _READER_LEFT = 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a stage; what the user can mend is said in one line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _stand_in_for_closed_streams()
    try:
        _run(words)
        if sys.stdout:
            sys.stdout.flush()
    except UserError as error:
        _complain(error)
        return _BAD_INPUT
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # who asks again need not wait for what is still ending
        print("nmt: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's last flush is quiet too
        return _READER_LEFT
    return 0


def _stand_in_for_closed_streams() -> None:
    """Let no file that is opened later take the number of a standard stream that our parent has closed."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:  # warnings and progress need not be seen; input and output must not be missed
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _run(words: list[str]) -> None:
    if not words:
        raise UserError(f"name a stage: {', '.join(STAGES)}; `nmt --help` says what they do")
    name, *overrides = words
    if name in _HELP:
        print(_usage())
    elif name == "--version":
        print(f"nmt {__version__}")
    elif name == "completion":
        _complete(overrides)
    elif name not in STAGES:
        raise UserError(f"there is no stage {name}; {nearest(name, STAGES)}")
    elif any(word in _HELP for word in overrides):
        print(_stage_usage(name, [word for word in overrides if word not in _HELP]))
    elif STAGES[name].together or os.environ.get("RANK", "0") == "0":
        _start(STAGES[name], overrides)


def _complete(words: list[str]) -> None:
    """Print what makes a shell complete our words; or, as that asks for it, how a line may go on."""
    from nmt.config.completion import SCRIPT, complete  # noqa: PLC0415

    if words[:1] == ["--"]:
        print("\n".join(complete(" ".join(words[1:]), {name: stage.settings for name, stage in STAGES.items()})))
    else:
        print(SCRIPT, end="")


def _start(stage: Stage, overrides: list[str]) -> None:
    """Run a stage once, or (with -m) once for each combination of the values given."""
    from nmt.config.compose import compose  # noqa: PLC0415 - `nmt --help` need not wait for it

    module, words = import_module(stage.module), [word for word in overrides if word not in _MULTIRUN]
    if stage.many:
        module.run([*stage.first, *words])
    elif len(words) < len(overrides):
        from nmt.config.multirun import multirun  # noqa: PLC0415

        multirun(partial(_one_of_many, stage.module), [*stage.first, *words])
    else:
        module.run(compose([*stage.first, *words]))


def _one_of_many(module: str, overrides: list[str]) -> None:
    """One run of a multirun, possibly in a process of its own."""
    from nmt.config.compose import compose  # noqa: PLC0415

    import_module(module).run(compose(overrides))


def _complain(error: UserError) -> None:
    """Say it once, though torchrun may have started us many times; what one process alone met says which."""
    rank = os.environ.get("RANK", "0")
    if rank == "0":
        print(f"nmt: {_on_one_line(str(error))}", file=sys.stderr)
    elif not isinstance(error, CommonError):
        print(f"nmt: rank {rank}: {_on_one_line(str(error))}", file=sys.stderr)


def _on_one_line(text: str) -> str:
    """Text as it may be shown: what it quotes of a file or a name could hold line breaks, or commands to a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _usage() -> str:
    stages = "\n".join(f"  {name:10} {stage.summary}" for name, stage in STAGES.items())
    return (
        "usage: nmt STAGE [KEY=VALUE ...] [GROUP=NAME ...]\n\n"
        f"stages:\n{stages}\n\n"
        "`nmt STAGE --help` lists its settings; `nmt --version` says which nmt this is.\n"
        '`eval "$(nmt completion)"` makes bash complete stages, settings and experiments.\n'
        "`nmt STAGE -m KEY=A,B` runs it with each value: in turn, or as hydra/launcher=... says.\n"
        "Without settings a stage works on the paper's base model, WMT14 English-German;\n"
        "`nmt demo` shows them all in minutes."
    )


def _stage_usage(name: str, overrides: list[str]) -> str:
    """A stage's settings, with the values that the rest of the line gives them."""
    from nmt.config.compose import compose, options  # noqa: PLC0415
    from nmt.config.keys import GROUPS, describe_keys, value_of  # noqa: PLC0415

    stage = STAGES[name]
    groups = [group for group in GROUPS if group == "experiment" or group in stage.settings]
    one = [] if any(word in _MULTIRUN for word in overrides) else overrides
    config = compose([*stage.first, *one])
    lines = [f"usage: nmt {name} [KEY=VALUE ...] [GROUP=NAME ...]", "", f"{name}: {stage.summary}", ""]
    lines += ["groups (a name stands for several settings):"]
    lines += [_wrap(f"{group}=", ", ".join(options(group))) for group in groups]
    lines += ["", f"settings (type, {'value with these words' if one else 'default'}):"]
    for key in (key for prefix in stage.settings for key in describe_keys(prefix)):
        lines += [f"  {key.name} ({key.type}, {_written(value_of(config, key.name))})", _wrap("", key.meaning)]
    lines += ["", "The settings of other stages are taken, too, so that the same words serve all of them;"]
    lines += [f"`nmt {name} experiment=multi30k --help` shows the values that an experiment gives."]
    return "\n".join(lines)


def _wrap(head: str, text: str) -> str:
    return textwrap.fill(text, 110, initial_indent=f"  {head:14}", subsequent_indent=" " * 16)


def _written(value: object) -> str:
    """A value as it is written on the command line."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{','.join(map(str, value))}]"
        case "":
            return "empty"
        case _:
            return str(value)
