"""The checkpoints of a run: save, prune, find by name and load them."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.compute import distributed
from nmt.config.folders import expanded
from nmt.errors import UserError, for_this_installation
from nmt.runs.checkpoint import (
    Checkpoint,
    DamagedError,
    check_weights,
    load,
    read_meta,
    write,
)
from nmt.runs.layout import AVERAGED, BEST, LAST, META, RunLayout, step_folder_name, step_of_folder_name
from nmt.storage.files import PARTIAL, link, remove, remove_abandoned, remove_folder

__all__ = [
    "AVERAGED",
    "Checkpoint",
    "Checkpoints",
    "DamagedError",
    "Saved",
    "check_weights",
    "find_folder",
    "load",
    "load_last_good",
    "resolve",
    "step_of_name",
]


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint on the disk, as its meta.json describes it."""

    path: Path
    step: int
    valid: Mapping[str, float]
    """The figures of its validation; empty if it was not validated."""
    best_by: str
    """The figure that chose the best checkpoint when it was saved: loss or bleu."""
    interim: bool
    """Whether it was saved only because the run was interrupted; the next checkpoint replaces it."""
    only_best: bool = False
    """Whether it was saved only because it was the best so far; so it does not count among the last."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of the run in `run_folder`."""

    run_folder: Path
    best_by: str = "loss"
    """The figure that chooses the best checkpoint: loss (lowest) or bleu (highest)."""

    @property
    def folder(self) -> Path:
        """The folder of the checkpoints."""
        return RunLayout(self.run_folder).checkpoints

    @property
    def newest_step(self) -> int:
        """The step of the newest checkpoint, even if that is damaged; 0 if there is none."""
        return max(map(_step_of, _step_folders(self.folder)), default=0)

    def save(
        self,
        step: int,
        *,
        weights: Mapping[str, Tensor],
        trainer: Mapping[str, object] | None,
        tokenizer_files: Mapping[str, bytes],
        config_text: str,
        valid: Mapping[str, float],
        interim: bool = False,
        only_best: bool = False,
        origin: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write the checkpoint of a step completely or not at all, and update the links `last` and `best`.

        Args:
            step: The number of updates so far.
            weights: The model's parameters by name.
            trainer: The training state: plain containers, numbers, strings and tensors; None for a model that was
                imported.
            tokenizer_files: The content of the tokenizer's files, by name.
            config_text: All settings, as YAML.
            valid: The figures of the validation of this step; may be empty.
            interim: Whether it is saved only because the run is interrupted.
            only_best: Whether it is saved only because it is the best so far.
            origin: The record of the model that the run began from, if any.

        Returns:
            The folder of the checkpoint.
        """
        path = self.folder / step_folder_name(step)
        write(
            path,
            step=step,
            weights=weights,
            trainer=trainer,
            tokenizer_files=tokenizer_files,
            config_text=config_text,
            valid=valid,
            best_by=self.best_by,
            interim=interim,
            only_best=only_best,
            origin=origin,
        )
        self._remove_later(step)
        self._link(self.steps())
        return path

    def _remove_later(self, step: int) -> None:
        """Delete the checkpoints of later steps; training has resumed before them because they are damaged."""
        for folder in _step_folders(self.folder):
            if _step_of(folder) > step:
                remove_folder(folder)

    def steps(self, *, strict: bool = False) -> list[Saved]:
        """Return the checkpoints with a good meta.json, earliest step first; if strict, a damaged one is an error."""
        saved = []
        for folder in _step_folders(self.folder):
            try:
                meta = read_meta(folder)
            except DamagedError as error:
                if strict:
                    raise
                _warn(str(error))
            else:
                saved.append(Saved(folder, meta.step, meta.valid, meta.best_by, meta.interim, meta.only_best))
        return saved

    def prune(self, keep_last: int, keep_best: int) -> None:
        """Delete all but the last `keep_last` checkpoints and the `keep_best` best; damaged ones go.

        A checkpoint that does not count among the last is kept while it is the newest, in addition to the others.
        """
        saved = self.steps()
        regular = [checkpoint for checkpoint in saved if not checkpoint.interim]
        scheduled = [checkpoint for checkpoint in regular if not checkpoint.only_best]
        kept = scheduled[-keep_last:] + rank(regular, self.best_by)[:keep_best] + saved[-1:]
        paths = {checkpoint.path for checkpoint in kept}
        self._link([checkpoint for checkpoint in saved if checkpoint.path in paths])
        for folder in _step_folders(self.folder):
            if folder not in paths:
                remove_folder(folder)

    def remove_leftovers(self) -> None:
        """Delete the temporary files of an interrupted run, but not those that another command is writing."""
        for leftover in (*self.run_folder.glob(f"*{PARTIAL}"), *self.folder.glob(f"*{PARTIAL}")):
            remove_abandoned(leftover)

    def _link(self, saved: Sequence[Saved]) -> None:
        for name, checkpoints in ((LAST, saved[-1:]), (BEST, rank(saved, self.best_by))):
            if checkpoints:
                link(self.folder / name, checkpoints[0].path.name)
            else:
                remove(self.folder / name)


def rank(saved: Sequence[Saved], best_by: str) -> list[Saved]:
    """Return the checkpoints with a figure `best_by`, best first; of equal ones, the earlier step first."""
    sign = -1 if best_by == "bleu" else 1
    judged = [checkpoint for checkpoint in saved if best_by in checkpoint.valid]
    return sorted(judged, key=lambda checkpoint: (sign * checkpoint.valid[best_by], checkpoint.step))


def resolve(run_folder: Path, name: str) -> Path:
    """Return the folder of a checkpoint.

    Args:
        run_folder: The folder of the run.
        name: averaged, best, last, a step (step-00001000 or 1000), or the path of any folder.
    """
    saved = Checkpoints(run_folder).steps()
    path = find_folder(run_folder, name, saved)
    if path is None:
        raise UserError(_missing(run_folder, name, saved))
    if name == AVERAGED and saved:
        meta, newest = read_meta(path), saved[-1].step
        if max(meta.step, meta.newest_step) < newest:
            _warn(f"{path} is of step {meta.step}, training is at step {newest}: `make average` updates it")
    return path


def step_of_name(name: str) -> int | None:
    """Return the step in the name of a checkpoint (step-00001000 or 1000), or None if it contains no step."""
    step = re.fullmatch(r"(?:step-)?([0-9]{1,18})", name)
    return int(step[1]) if step else None


def find_folder(run_folder: Path, name: str, saved: Sequence[Saved]) -> Path | None:
    """Return the folder of a checkpoint, given all of the run; None if there is none of this name."""
    # the links may be outdated if the run was killed, so the steps themselves decide
    if name == LAST:
        return saved[-1].path if saved else None
    if name == BEST:
        ranked = rank(saved, saved[-1].best_by) if saved else []
        return ranked[0].path if ranked else None
    step = step_of_name(name)
    path = RunLayout(run_folder).checkpoints / (name if step is None else step_folder_name(step))
    if step is not None or name == AVERAGED:  # a folder of this name elsewhere is ./averaged
        return path if path.is_dir() else None
    return next((folder for folder in (path, expanded(name)) if (folder / META).exists()), None)


def _missing(run_folder: Path, name: str, saved: Sequence[Saved]) -> str:
    if name != AVERAGED and "/" in name:
        return f"checkpoint={name} is not the folder of a checkpoint: it has no {META}"
    there = [checkpoint.path.name for checkpoint in saved]
    if RunLayout(run_folder).averaged.is_dir():
        there.append(AVERAGED)
    listed = f"there are {', '.join(there)}" if there else "there are none"
    if name == AVERAGED and saved:
        remedy = "run `make average` first, or choose checkpoint=last"
    elif name == BEST and saved:
        remedy = "no checkpoint was validated; choose checkpoint=last, or train on past training.valid_every"
    elif there:
        remedy = "choose one of these"
    else:
        remedy = "run `make train` first (with the same ARGS)"
    return f"no checkpoint {name} in {RunLayout(run_folder).checkpoints}; {listed}: {remedy}"


def load_last_good(run_folder: Path, before: float = math.inf) -> Checkpoint | None:
    """Return the newest undamaged checkpoint of a step before `before`, or None if there is no checkpoint."""
    folders = [folder for folder in _step_folders(RunLayout(run_folder).checkpoints) if _step_of(folder) < before]
    for folder in reversed(folders):
        try:
            return load(folder, trainer=True)
        except DamagedError as error:
            _warn(f"{error}; trying the one before it")
    if folders:
        raise UserError(
            f"all {len(folders)} checkpoints in {RunLayout(run_folder).checkpoints} are damaged: "
            "restore one, or delete that folder or choose another name= to start from the beginning"
        )
    return None


def _step_folders(folder: Path) -> list[Path]:
    """Return the folders of the steps in the order of the steps, which is not the order of the names."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if step_of_folder_name(path.name) is not None), key=_step_of)


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _warn(message: str) -> None:
    if distributed.is_main():  # all processes of a run read the same folder
        print(f"warning: {for_this_installation(message)}", file=sys.stderr, flush=True)
