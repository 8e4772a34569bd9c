"""The checkpoints of a run: saved, kept, found by name and loaded."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.compute import distributed
from nmt.errors import UserError
from nmt.runs.checkpoint_files import (
    META,
    STEP_FOLDER,
    Checkpoint,
    DamagedError,
    check_weights,
    load,
    read_meta,
    step_folder_name,
    write,
)
from nmt.storage.files import PARTIAL, link, remove, remove_folder

__all__ = [
    "AVERAGED",
    "Checkpoint",
    "Checkpoints",
    "DamagedError",
    "Saved",
    "check_weights",
    "load",
    "load_last_good",
    "resolve",
    "step_of_name",
]

AVERAGED = "averaged"


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint on the disk, as its meta.json describes it."""

    path: Path
    step: int
    valid: Mapping[str, float]
    """What it reached on the development set; empty where it was not looked at."""
    best_by: str
    """What best meant when it was saved: loss or bleu."""
    interim: bool
    """Whether only an interruption called for it: it goes with the next one, as if nothing had happened."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of the run in `run_folder`."""

    run_folder: Path
    best_by: str = "loss"
    """What best means: loss (lowest) or bleu (highest)."""

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.run_folder / "checkpoints"

    def save(
        self,
        step: int,
        *,
        weights: Mapping[str, Tensor],
        trainer: Mapping[str, Any],
        tokenizer_files: Sequence[Path],
        config_text: str,
        valid: Mapping[str, float],
        interim: bool = False,
    ) -> Path:
        """Write the checkpoint of a step, whole or not at all, and point `last` and `best` anew.

        Args:
            step: Updates made so far.
            weights: The model's parameters by name.
            trainer: What training needs besides to go on: plain containers, numbers, texts and tensors.
            tokenizer_files: The files of the tokenizer.
            config_text: All settings, as YAML.
            valid: What the model reached on the development set; may be empty.
            interim: Whether only an interruption calls for it.

        Returns:
            The checkpoint's folder.
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
        )
        for later in _step_folders(self.folder):
            if _step_of(later) > step:  # training went back behind it, because it was damaged
                remove_folder(later)
        self._link(self.steps())
        return path

    def steps(self, *, strict: bool = False) -> list[Saved]:
        """All checkpoints that describe themselves as they should, earliest step first; if strict, none may not."""
        saved = []
        for folder in _step_folders(self.folder):
            try:
                meta = read_meta(folder)
            except DamagedError as error:
                if strict:
                    raise
                _warn(str(error))
            else:
                best_by, interim = meta.get("best_by", "loss"), meta.get("interim") is True
                saved.append(Saved(folder, meta["step"], meta["valid"], best_by, interim))
        return saved

    def prune(self, keep_last: int, keep_best: int) -> None:
        """Delete all but the last `keep_last` checkpoints and the `keep_best` best; interim and damaged ones go."""
        saved = self.steps()
        saved = [checkpoint for checkpoint in saved[:-1] if not checkpoint.interim] + saved[-1:]
        kept = saved[-keep_last:] + rank(saved, self.best_by)[:keep_best]
        paths = {checkpoint.path for checkpoint in kept}
        self._link([checkpoint for checkpoint in saved if checkpoint.path in paths])
        for folder in _step_folders(self.folder):
            if folder not in paths:
                remove_folder(folder)

    def remove_leftovers(self) -> None:
        """Delete what an interrupted run left unfinished."""
        for leftover in (*self.run_folder.glob(f"*{PARTIAL}"), *self.folder.glob(f"*{PARTIAL}")):
            remove(leftover)

    def _link(self, saved: Sequence[Saved]) -> None:
        for name, checkpoints in (("last", saved[-1:]), ("best", rank(saved, self.best_by))):
            if checkpoints:
                link(self.folder / name, checkpoints[0].path.name)
            else:
                remove(self.folder / name)


def rank(saved: Sequence[Saved], best_by: str) -> list[Saved]:
    """Those with a `best_by` of their own, best first; the earlier of two that are equal."""
    sign = -1 if best_by == "bleu" else 1
    judged = [checkpoint for checkpoint in saved if best_by in checkpoint.valid]
    return sorted(judged, key=lambda checkpoint: (sign * checkpoint.valid[best_by], checkpoint.step))


def resolve(run_folder: Path, name: str) -> Path:
    """The folder of a checkpoint.

    Args:
        run_folder: The run it belongs to.
        name: averaged, best, last, a step (step-00001000 or 1000), or a folder anywhere.
    """
    saved = Checkpoints(run_folder).steps()
    path = _find(run_folder, name, saved)
    if path is None:
        raise UserError(_missing(run_folder, name, saved))
    if name == AVERAGED and saved and (step := read_meta(path)["step"]) < saved[-1].step:
        _warn(f"{path} is of step {step}, training is at step {saved[-1].step}: `make average` brings it up to date")
    return path


def step_of_name(name: str) -> int | None:
    """Return the step that the name of a checkpoint stands for (step-00001000 or 1000), if it is that of a step."""
    step = re.fullmatch(r"(?:step-)?([0-9]{1,18})", name)
    return int(step[1]) if step else None


def _find(run_folder: Path, name: str, saved: Sequence[Saved]) -> Path | None:
    # The links are for people: a kill may come before they are renewed, so the steps themselves decide.
    if name == "last":
        return saved[-1].path if saved else None
    if name == "best":
        ranked = rank(saved, saved[-1].best_by) if saved else []
        return ranked[0].path if ranked else None
    step = step_of_name(name)
    path = run_folder / "checkpoints" / (name if step is None else step_folder_name(step))
    for folder in (path, Path(name)):
        if folder.is_dir() and (step is not None or name == AVERAGED or (folder / META).exists()):
            return folder
    return None


def _missing(run_folder: Path, name: str, saved: Sequence[Saved]) -> str:
    if name != AVERAGED and "/" in name:
        return f"checkpoint={name} is no folder of a checkpoint: it has no {META}"
    there = [checkpoint.path.name for checkpoint in saved]
    if (run_folder / "checkpoints" / AVERAGED).is_dir():
        there.append(AVERAGED)
    listed = f"there are {', '.join(there)}" if there else "there is none at all"
    if name == AVERAGED and saved:
        remedy = "run `make average` first, or choose checkpoint=last"
    elif name == "best" and saved:
        remedy = "none was validated; choose checkpoint=last, or train on past training.valid_every"
    elif there:
        remedy = "choose one of these"
    else:
        remedy = "run `make train` first (with the same ARGS)"
    return f"no checkpoint {name} in {run_folder / 'checkpoints'}; {listed}: {remedy}"


def load_last_good(run_folder: Path, before: float = math.inf) -> Checkpoint | None:
    """The newest checkpoint (of a step `before` one) that is intact, for training to go on from; None without any."""
    folders = [folder for folder in _step_folders(run_folder / "checkpoints") if _step_of(folder) < before]
    for folder in reversed(folders):
        try:
            return load(folder, trainer=True)
        except DamagedError as error:
            _warn(f"{error}; going back to the one before")
    if folders:
        raise UserError(
            f"all {len(folders)} checkpoints in {run_folder / 'checkpoints'} are damaged: "
            "restore one, or delete that folder or choose another name= to start from the beginning"
        )
    return None


def _step_folders(folder: Path) -> list[Path]:
    """By the number of the step, which the order of the names is not."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if STEP_FOLDER.fullmatch(path.name)), key=_step_of)


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _warn(message: str) -> None:
    if distributed.is_main():  # all processes of a run look at the same folder
        print(f"warning: {message}", file=sys.stderr, flush=True)
