"""The command line: commands, help, errors and exit codes."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt import __version__, cli
from nmt.commands import COMMANDS, MAIN_SETTINGS, local_copies
from nmt.config.keys import all_keys, describe_keys
from nmt.config.tree import Config
from nmt.errors import UserError

Fake = Callable[[Callable[[Config], None]], None]


@pytest.fixture
def fake_commands(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Replace the function that every command runs."""

    def fake(run: Callable[[Config], None]) -> None:
        for module in (cli, local_copies):
            monkeypatch.setattr(module, "import_module", lambda _: SimpleNamespace(run=run))

    return fake


def test_a_command_gets_the_composed_settings(fake_commands: Fake) -> None:
    seen: list[Config] = []
    fake_commands(seen.append)
    assert cli.main(["train", "experiment=multi30k", "training.steps=3"]) == 0
    assert (seen[0].name, seen[0].training.steps) == ("multi30k", 3)


def test_the_demo_experiment_is_only_a_default(fake_commands: Fake) -> None:
    seen: list[Config] = []
    fake_commands(seen.append)
    assert cli.main(["demo", "training.steps=3"]) == 0
    assert cli.main(["demo", "experiment=multi30k"]) == 0
    assert [config.name for config in seen] == ["demo", "multi30k"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "nmt: there is no command trian; did you mean train?\n"),
        (["train", "training.stepz=3"], "nmt: there is no setting training.stepz; did you mean training.steps?\n"),
    ],
)
def test_a_mistake_gives_one_line_and_exit_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    "words", [["data", "data.source=files", f"data.train=[{'x' * 300},b.de]"], ["translate", f"checkpoint={'x' * 300}"]]
)
def test_a_name_that_the_file_system_refuses_gives_one_line_and_exit_code_2(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nmt: cannot use ")
    assert "x" * 300 in line
    assert f": {os.strerror(errno.ENAMETOOLONG)}. " in line


def test_a_file_that_may_not_be_read_gives_one_line_and_exit_code_2(
    fake_commands: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Config) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/home/theirs/input.en")

    fake_commands(run)
    assert cli.main(["translate"]) == 2
    assert capsys.readouterr().err == (
        "nmt: cannot use /home/theirs/input.en: Permission denied. "
        "Check its name, the permissions of the folders above it, and the free space.\n"
    )


def test_an_error_of_the_system_that_names_no_file_is_no_error_of_the_user(fake_commands: Fake) -> None:
    def run(_: Config) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    fake_commands(run)
    with pytest.raises(OSError, match="allocate"):
        cli.main(["translate"])


def test_a_setting_may_have_no_effect_only_in_some_runs_of_a_sweep(fake_commands: Fake, tmp_path: Path) -> None:
    seen: list[Config] = []
    fake_commands(seen.append)
    words = [f"paths.outputs={tmp_path}", "training.muon_rate=0.5"]
    assert cli.main(["train", *words]) == 2
    assert not seen
    assert cli.main(["train", "-m", *words, "training.optimizer=adam,muon"]) == 0
    assert [config.training.optimizer for config in seen] == ["adam", "muon"]


def test_without_words_the_message_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr().err.startswith("nmt: name a command: data, train,")


@pytest.mark.parametrize(("rank", "said"), [("0", "nmt: no data here\n"), ("3", "nmt: rank 3: no data here\n")])
def test_under_torchrun_an_error_names_its_rank(
    rank: str, said: str, fake_commands: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Config) -> None:
        raise UserError("no data here")

    fake_commands(run)
    monkeypatch.setenv("RANK", rank)
    assert cli.main(["train"]) == 2
    assert capsys.readouterr().err == said


def test_under_torchrun_wrong_settings_are_reported_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert cli.main(["train", "training.stepz=3"]) == 2
    assert capsys.readouterr().err == ""


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt(), 130), (UserError("no"), 2)])
def test_errors_have_their_exit_codes(raised: BaseException, code: int, fake_commands: Fake) -> None:
    def run(_: Config) -> None:
        raise raised

    fake_commands(run)
    assert cli.main(["train"]) == code


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("raised", [AttributeError("of a half-made object"), UserError("of a setting")])
def test_errors_that_an_interrupt_causes_are_interrupts(
    raised: Exception, fake_commands: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Config) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise raised

    fake_commands(run)
    assert cli.main(["train"]) == 130
    assert capsys.readouterr().err == "nmt: interrupted\n"


@pytest.mark.usefixtures("interruptible")
def test_other_errors_of_any_kind_are_not_hidden(fake_commands: Fake) -> None:
    def run(_: Config) -> None:
        raise AttributeError("a mistake of ours")

    fake_commands(run)
    with pytest.raises(AttributeError, match="a mistake of ours"):
        cli.main(["train"])


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


def test_exit_codes_and_unexpected_errors_of_a_command_pass_through(fake_commands: Fake) -> None:
    def leave(_: Config) -> None:
        raise SystemExit(7)

    def fail(_: Config) -> None:
        raise ZeroDivisionError

    fake_commands(leave)
    with pytest.raises(SystemExit, match="7"):
        cli.main(["train"])
    fake_commands(fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["train"])


def test_a_closed_pipe_ends_the_process_silently() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "nmt", "train", "--help"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_receives_the_output_of_a_closed_stream(closed: str, tmp_path: Path) -> None:
    program = (
        "import os, sys; from nmt import cli; code = cli.main(['--version']); "
        "number = os.open('file', os.O_CREAT | os.O_WRONLY); sys.exit(code or number < 3)"
    )
    command = ["sh", "-c", f'"{sys.executable}" -c "{program}" {closed}']
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_usage_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    usage = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name:10} {command.summary}\n" in usage
    assert usage.count("\n") <= 40
    assert max(map(len, usage.splitlines())) <= 100


@pytest.mark.parametrize("words", [["--version"], ["train", "training.steps=3", "--version"]])
def test_version_is_printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"nmt {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_lists_its_settings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "training.steps=3", "--help=all"]) == 0
    usage = capsys.readouterr().out
    assert "table3/a1" in usage
    for prefix in COMMANDS[name].settings:
        keys = describe_keys(prefix)
        assert keys
        for key in keys:
            assert f"{'*' if key.adjustable else ' '} {key.name} ({key.type}, " in usage
    assert max(map(len, usage.splitlines())) <= 120


def test_the_help_of_train_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--help"]) == 0
    assert len(capsys.readouterr().out.split()) <= 900
    assert {*MAIN_SETTINGS} <= all_keys().keys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "--help"], "* training.steps (int, 100000)\n"),
        (["train", "experiment=multi30k", "training.valid_every=7", "--help"], "* training.steps (int, 2500)\n"),
        (["train", "-h", "training.valid_every=7"], "* training.valid_every (int, 7)\n"),
        (["demo", "--help"], "* training.steps (int, 700)\n"),
        (["train", "-m", "training.steps=3,4", "--help"], "* training.steps (int, 100000)\n"),
    ],
)
def test_help_shows_the_values_that_the_overrides_give(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 0
    assert said in capsys.readouterr().out


def test_every_command_has_a_module() -> None:
    assert all(callable(import_module(command.module).run) for command in COMMANDS.values())


def test_help_needs_neither_torch_nor_hydra() -> None:
    heavy = "any(module in sys.modules for module in ('torch', 'hydra'))"
    program = f"import sys; from nmt.cli import main; main(['--help']); sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0
