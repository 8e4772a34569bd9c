"""Run a command in local copies of its folders if paths.data or paths.outputs are addresses."""

from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import PurePosixPath

from nmt.config.folders import is_address
from nmt.config.schema import Config, DataConfig
from nmt.data.corpora import corpus_splits
from nmt.data.layout import column_name, text_names
from nmt.data.store import file_names
from nmt.feature import Command
from nmt.launched import is_main_process
from nmt.runs.layout import TRAINER, RunLayout
from nmt.runs.remote_checkpoint import is_heavy, is_weights_of
from nmt.storage.mirror import Mirror, Wanted, publishing


def run_command(command: Command, config: Config) -> None:
    """Run a command; fetch what it needs from addresses before it, and store what it has changed there after it."""
    with ExitStack() as stack:
        if is_address(config.paths.data) and command.corpus != "none":
            stack.enter_context(_corpus(command, config))
        if is_address(config.paths.outputs) and command.weights != "none":
            stack.enter_context(_run(command, config))
        import_module(command.module).run(config)


@contextmanager
def _corpus(command: Command, config: Config) -> Iterator[None]:
    """Keep a copy of the corpus; store its changes if the command prepares it."""
    mirror = _mirror_of_corpus(config, config.data)
    if command.owns != "corpus":
        mirror.pull(_needed_text(command.corpus, config.data, config.evaluation.splits))
        yield
        return
    with mirror.owned("is being prepared: waiting until that is done", _say):
        mirror.pull()
        with publishing(mirror):
            yield


@contextmanager
def _run(command: Command, config: Config) -> Iterator[None]:
    """Keep a copy of the run; the main process stores its changes."""
    mirror = _mirror_of_run(config)
    with ExitStack() as stack:
        is_main = is_main_process()
        if is_main and command.owns == "run":
            taken = "is being trained by another process: wait until it is done, or give this run another name="
            stack.enter_context(mirror.owned(taken))
        mirror.pull(lambda name: not is_heavy(name))
        mirror.pull(_needed(command, config))
        if is_main:
            stack.enter_context(publishing(mirror))
        yield


def fetch_records(config: Config) -> None:
    """Fetch a run without its weights, for a command that reads other runs than its own."""
    if is_address(config.paths.outputs):
        _mirror_of_run(config).pull(lambda name: not is_heavy(name))


def fetch_scored_text(config: Config, data: DataConfig, splits: Container[str]) -> None:
    """Fetch the text of a corpus that was scored, for a command that reads other corpora than its own."""
    if is_address(config.paths.data):
        _mirror_of_corpus(config, data).pull(_needed_text("held out", data, splits))


def _mirror_of_corpus(config: Config, data: DataConfig) -> Mirror:
    return Mirror(_below(config.paths.data, data.corpus), config.corpora_folder / data.corpus, "paths.data")


def _mirror_of_run(config: Config) -> Mirror:
    return Mirror(_below(config.paths.outputs, config.name), config.run_folder, "paths.outputs")


def _needed_text(needed: str, data: DataConfig, scored: Container[str]) -> Wanted:
    """Return which files of a corpus a command needs, given `Command.corpus` and the splits that are scored."""
    unneeded = set()
    for split in (each for each in corpus_splits(data) if each.is_training_text):
        columns = [each.name for each in split.columns]
        if needed == "held out":
            unneeded |= {*file_names(split.name, split.languages, columns)}
        if needed != "held out" or split.name not in scored:
            unneeded |= {*text_names(split.name, split.languages), *(column_name(split.name, each) for each in columns)}
    return lambda name: needed == "all" or name not in unneeded


def _needed(command: Command, config: Config) -> Wanted:
    """Return which files of a run a command needs, once their records are here."""
    from nmt.runs.checkpoints import Checkpoints, find_folder  # noqa: PLC0415 - imports torch

    if command.weights == "all":
        return lambda name: PurePosixPath(name).name != TRAINER
    saved = Checkpoints(config.run_folder).steps()
    if command.weights == "newest":
        newest = {saved[-1].path.name} if saved else set()
        return lambda name: not is_heavy(name) or PurePosixPath(name).parent.name in newest
    names = [name for name in (config.checkpoint, *config.decoding.ensemble) if not is_address(name)]
    folders = {folder for name in names if (folder := find_folder(config.run_folder, name, saved))}
    own = {each.name for each in folders if each.parent == RunLayout(config.run_folder).checkpoints}
    return lambda name: not is_heavy(name) or is_weights_of(name, own)


def _below(address: str, name: str) -> str:
    return f"{address.rstrip('/')}/{name}"


def _say(message: str) -> None:
    print(message, flush=True)
