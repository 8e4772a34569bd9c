"""The command line: commands, help, errors and exit codes."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace

import pytest

from nmt import __version__, cli
from nmt.commands import COMMANDS, MAIN_SETTINGS, local_copies
from nmt.config.keys import all_keys
from nmt.config.tree import Config
from nmt.errors import CommonError, UserError

Fake = Callable[[Callable[[Config], None]], None]


@pytest.fixture
def fake_commands(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Replace the function that every command runs."""

    def fake(run: Callable[[Config], None]) -> None:
        for module in (cli, local_copies):
            monkeypatch.setattr(module, "import_module", lambda _: SimpleNamespace(run=run))

    return fake


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def raising(error: BaseException) -> Callable[[Config], None]:
    def run(_: Config) -> None:
        raise error

    return run


def test_a_command_gets_the_composed_settings_and_its_own_defaults(fake_commands: Fake) -> None:
    seen: list[Config] = []
    fake_commands(seen.append)
    for words in (["train", "experiment=multi30k", "training.steps=3"], ["demo"], ["demo", "experiment=multi30k"]):
        assert cli.main(words) == 0
    assert [(config.name, config.training.steps) for config in seen] == [
        ("multi30k", 3),
        ("demo", 700),
        ("multi30k", 20_000),
    ]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("no a\nb\x1b[2J\u2028\udcff"), 2, r"nmt: no a\nb\x1b[2J\u2028\udcff"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/home/theirs/input.en"),
            2,
            "nmt: cannot use /home/theirs/input.en: Permission denied. Check its name, the permissions of the folders "
            "above it, and the free space.",
        ),
        (KeyboardInterrupt(), 130, "nmt: interrupted"),
    ],
)
def test_errors_of_the_user_are_one_line_and_an_exit_code(
    error: BaseException, code: int, said: str, fake_commands: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_commands(raising(error))
    assert cli.main(["translate"]) == code
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nmt: name a command: data, train,"),
        (["trian"], "nmt: there is no command trian; did you mean train?"),
        (["train", "training.stepz=3"], "nmt: there is no setting training.stepz; did you mean training.steps?"),
        (["table3", "-m", "seed=1,2"], "nmt: `nmt table3` does several runs itself: leave out --multirun"),
    ],
)
def test_a_wrong_word_gives_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("rank", "error", "said"),
    [
        ("0", UserError("no data here"), "nmt: no data here\n"),
        ("3", UserError("no data here"), "nmt: rank 3: no data here\n"),
        ("3", CommonError("no data here"), ""),
    ],
)
def test_under_torchrun_the_first_rank_reports_what_all_share(
    rank: str,
    error: UserError,
    said: str,
    fake_commands: Fake,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake_commands(raising(error))
    monkeypatch.setenv("RANK", rank)
    assert cli.main(["train"]) == 2
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("command", "times"), [("data", 0), ("translate", 0), ("eval", 1), ("train", 1)])
def test_only_some_commands_run_in_all_processes(
    command: str, times: int, fake_commands: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Config] = []
    fake_commands(seen.append)
    monkeypatch.setenv("RANK", "1")
    assert cli.main([command]) == 0
    assert len(seen) == times


def test_a_second_interrupt_ends_the_process_immediately() -> None:
    """After the first interrupt the process waits for its threads."""
    program = (
        "import signal, threading, time; from nmt import cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background jobs of a shell ignore it
        "def run(words):\n"
        "    threading.Thread(target=time.sleep, args=(300,)).start()\n"
        "    print('running', flush=True)\n"
        "    time.sleep(300)\n"
        "cli._run = run\n"
        "cli.main(['train'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "nmt: interrupted\n"
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(("flag", "code"), [("--help", 141), ("--info=defaults", 0)])
def test_a_closed_pipe_ends_the_process_silently(flag: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "nmt", "train", flag]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("buffered", ["PYTHONUNBUFFERED=", "PYTHONUNBUFFERED=1"])
@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        (">&-", 0, ""),
        (">/dev/full", 2, "nmt: cannot write the output: the disk is full. Free some space.\n"),
    ],
)
def test_output_that_cannot_be_written_is_one_line_or_none(buffered: str, target: str, code: int, said: str) -> None:
    command = f"WORLD_SIZE= {buffered} '{sys.executable}' -m nmt --help {target}"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)


def test_usage_lists_the_commands_without_torch_and_hydra() -> None:
    heavy = "any(module in sys.modules for module in ('torch', 'hydra', 'yaml'))"
    program = f"import sys; from nmt.cli import main; main(['--help']); sys.exit({heavy})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for name, command in COMMANDS.items():
        assert f"  {name:10} {command.summary}\n" in done.stdout
        assert callable(import_module(command.module).run)


@pytest.mark.parametrize("words", [["--version"], ["train", "training.steps=3", "--version"]])
def test_version_is_printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"nmt {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_describes_its_settings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "model.layers=3", "--help=all"]) == 0
    usage = capsys.readouterr().out
    assert "table3/a1" in usage
    for prefix in COMMANDS[name].settings:
        keys = [key for key in all_keys().values() if key.name == prefix or key.name.startswith(f"{prefix}.")]
        assert keys
        for key in keys:
            assert f"{'*' if key.adjustable else ' '} {key.name} ({key.type}, " in usage
    assert max(len(line) for line in usage.splitlines() if line.startswith(16 * " ")) <= 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "experiment=multi30k", "training.valid_every=7", "--help"], "* training.steps (int, 20000)\n"),
        (["demo", "-h"], "* training.steps (int, 700)\n"),
        (["train", "-m", "training.steps=3,4", "--help"], "* training.steps (int, 100000)\n"),
    ],
)
def test_help_is_short_and_shows_the_values_that_the_overrides_give(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 0
    usage = capsys.readouterr().out
    assert said in usage
    assert len(usage.split()) <= 900
    assert {*MAIN_SETTINGS} <= all_keys().keys()


def test_one_of_several_processes_ends_without_the_interpreters_exit() -> None:
    program = "import atexit, runpy; atexit.register(print, 'exit'); runpy.run_module('nmt', run_name='__main__')"
    for processes, said in ((1, "exit\n"), (2, "")):
        words, environment = [sys.executable, "-c", program, "--version"], {**os.environ, "WORLD_SIZE": str(processes)}
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout == f"nmt {__version__}\n{said}"
