"""Check that prepared text is what the settings name, before it is used."""

from collections.abc import Container, Iterable
from dataclasses import asdict

from nmt.config.data import NOT_OF_THE_TEXT
from nmt.config.keys import written
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.data.corpora import check_all_is_read, corpus_splits
from nmt.data.make_tokenizer import tokenizer_task
from nmt.data.manifest import Manifest, Task, TrainedTokenizer, collect_task, different_inputs, read_manifest
from nmt.data.prepare import tasks_of, text_tasks
from nmt.data.store import DESCRIPTION
from nmt.errors import UserError
from nmt.storage.files import checksum

FROM_OUTSIDE = ("source", "tokenizer")
"""Inputs of tasks that identify files outside the corpus, which may be gone later."""


def require_prepared(config: Config) -> None:
    """Refuse a corpus that is not prepared, or was prepared from other text or with other settings."""
    check_all_is_read(config.data)
    manifest = read_manifest(config.data_folder)
    _check(config, manifest, tasks_of(config, manifest, checking=True))


def require_text(config: Config, names: Container[str]) -> None:
    """Refuse splits whose text is not the one that the settings name; a split without a record passes."""
    check_all_is_read(config.data)
    manifest = read_manifest(config.data_folder)
    splits = [each for each in corpus_splits(config.data) if each.name in names]
    splits = [each for each in splits if collect_task(each.name) in manifest.tasks]
    _check(config, manifest, text_tasks(config, manifest, splits, checking=True))


def prepared_tokenizer(config: Config) -> TrainedTokenizer | None:
    """Return the record of the tokenizer that was prepared with these settings; None if there is none."""
    try:
        manifest = read_manifest(config.data_folder)
        _check(config, manifest, [tokenizer_task(config, manifest, checking=True)])
        return manifest.tokenizer()
    except UserError:
        return None


def _check(config: Config, manifest: Manifest, tasks: Iterable[Task]) -> None:
    """Refuse tasks that `make data` would run."""
    before = flatten(manifest.settings)
    now = flatten({"data": asdict(config.data), "tokenizer": asdict(config.tokenizer)})
    changes = "; ".join(
        f"{name}={written(before[name])}, not {written(now[name])}"
        for name in now
        if name in before and before[name] != now[name] and name.rpartition(".")[2] not in NOT_OF_THE_TEXT
    )
    for task in tasks:
        if _is_different(task, manifest, may_be_gone=not changes):
            otherwise = f"is not prepared, or from other files than there are now ({task.name})"
            reason = f"was prepared with {changes}" if changes else otherwise
            raise UserError(
                f"{manifest.folder} {reason}: run `make data` with these settings, or give this corpus a name of its "
                "own with data.corpus."
            )


def _is_different(task: Task, manifest: Manifest, *, may_be_gone: bool) -> bool:
    """Return whether something of a task is not as recorded."""
    record = manifest.tasks.get(task.name)
    if record is None:
        return True
    for name in different_inputs(task, record):
        if not (task.inputs[name] is None and may_be_gone and name in FROM_OUTSIDE):
            return True
    # an interrupted preparation may have left ids that are newer than their record
    paths = [manifest.folder / name for name in record.outputs if name.endswith(DESCRIPTION)]
    return any(path.exists() and checksum(path) != record.outputs[path.name] for path in paths)
