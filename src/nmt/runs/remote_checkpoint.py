"""Fetch a checkpoint of a run at an address: its record and those of its run, then its weights."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from nmt.config.folders import local_folder
from nmt.errors import UserError
from nmt.runs.layout import CHECKPOINTS, META, TRAINER, WEIGHTS
from nmt.storage.addresses import remote_folder
from nmt.storage.index import read_index
from nmt.storage.mirror import Mirror

HEAVY = (WEIGHTS, TRAINER)
"""Files of checkpoints that are fetched only if a command loads them."""


def fetch_checkpoint(address: str, setting: str, choose: Callable[[Path, str], Path], *, weights: bool = True) -> Path:
    """Return the folder of a local copy of a checkpoint.

    Args:
        address: That of a run, such as s3://bucket/runs/mine, or of a checkpoint in its folder `checkpoints`.
        setting: The setting that gives the address, for errors.
        choose: Returns the folder of a checkpoint, given the folder of the run and the checkpoint's name, which is
            empty if the address is that of the run.
        weights: Whether the weights are needed.
    """
    run, name = _run_and_checkpoint(address.rstrip("/"), setting)
    mirror = Mirror(run, local_folder(run), setting)
    mirror.pull(lambda each: not is_heavy(each))
    if not any(mirror.folder.glob(f"{CHECKPOINTS}/*/{META}")):
        raise UserError(
            f"{setting}={address}: there is no checkpoint of a run at {run}: name a run that nmt has stored there, "
            f"such as s3://bucket/runs/mine, or a checkpoint of it, such as s3://bucket/runs/mine/{CHECKPOINTS}/averaged"
        )
    folder = choose(mirror.folder, name)
    if weights:
        mirror.pull(lambda each: not is_heavy(each) or is_weights_of(each, {folder.resolve().name}))
    return folder


def _run_and_checkpoint(address: str, setting: str) -> tuple[str, str]:
    """Return the address of a run and the name of its checkpoint, which is empty if the address is that of the run."""
    run, separator, name = address.rpartition(f"/{CHECKPOINTS}/")
    # paths.outputs may end like the folder of the checkpoints of a run, so what is there decides
    if not separator or read_index(remote_folder(address, setting), address):
        return address, ""
    return run, name


def is_heavy(name: str) -> bool:
    """Return whether a file of a run, given its name, is fetched only if a command loads it."""
    return name.startswith(f"{CHECKPOINTS}/") and PurePosixPath(name).name in HEAVY


def is_weights_of(name: str, checkpoints: set[str]) -> bool:
    """Return whether a file of a run has the weights of one of some checkpoints."""
    path = PurePosixPath(name)
    return path.name == WEIGHTS and path.parent.name in checkpoints
