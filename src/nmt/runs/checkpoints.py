"""The checkpoints of a run: keep the last and the best, find one by name, load the last good one."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.compute import distributed
from nmt.config.folders import expanded
from nmt.errors import UserError, for_this_installation
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, DamagedError, load, read_meta, write
from nmt.runs.layout import AVERAGED, BEST, LAST, META, RunLayout, step_folder_name, step_of_name
from nmt.storage.files import PARTIAL, link, remove


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of the run in `run_folder`."""

    run_folder: Path
    keep_last: int | None = None
    """How many of the last checkpoints to keep; None keeps all."""
    keep_best: int = 0
    """How many of the best checkpoints to keep besides."""

    @property
    def folder(self) -> Path:
        """The folder of the checkpoints."""
        return RunLayout(self.run_folder).checkpoints

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint completely or not at all, update the links `last` and `best`, and delete old checkpoints.

        Those of later steps are deleted, too: training has resumed before them because they are damaged. Return the
        folder of the checkpoint.
        """
        path = self.folder / step_folder_name(checkpoint.step)
        write(path, checkpoint)
        kept = self._kept([each for each in self.steps() if each.step <= checkpoint.step])
        for name, checkpoints in ((LAST, kept[-1:]), (BEST, rank(kept))):
            if checkpoints:
                link(self.folder / name, checkpoints[0].path.name)
            else:
                remove(self.folder / name)
        paths = {each.path for each in kept}
        for step, folder in RunLayout(self.run_folder).steps().items():
            if step > checkpoint.step or (self.keep_last is not None and folder not in paths):
                remove(folder)
        return path

    def steps(self, *, strict: bool = False) -> list[CheckpointMeta]:
        """Return the checkpoints with a good meta.json, earliest step first; if strict, a damaged one is an error."""
        saved = []
        for folder in RunLayout(self.run_folder).steps().values():
            try:
                saved.append(read_meta(folder))
            except DamagedError as error:
                if strict:
                    raise
                _warn(str(error))
        return saved

    def remove_leftovers(self) -> None:
        """Delete unfinished checkpoints of a killed process; only who holds the lock of the run may do so."""
        for leftover in self.folder.glob(f"*{PARTIAL}"):
            if not leftover.name.startswith(AVERAGED):  # which another command may be writing
                remove(leftover)

    def _kept(self, saved: list[CheckpointMeta]) -> list[CheckpointMeta]:
        """Return the checkpoints to keep: the last `keep_last`, the best `keep_best`, and the newest.

        Those that do not count among the last are kept only as long as they are the newest, or among the best.
        """
        if self.keep_last is None:
            return saved
        regular = [each for each in saved if not each.interim]
        scheduled = [each for each in regular if not each.only_best]
        kept = [*scheduled[-self.keep_last :], *rank(regular)[: self.keep_best], *saved[-1:]]
        return [each for each in saved if each in kept]


def rank(saved: Sequence[CheckpointMeta]) -> list[CheckpointMeta]:
    """Return the checkpoints that were validated, lowest loss first; of equal ones, the earlier step first."""
    return sorted((each for each in saved if "loss" in each.valid), key=lambda each: (each.valid["loss"], each.step))


def resolve(run_folder: Path, name: str) -> Path:
    """Return the folder of a checkpoint: averaged, best, last, a step (step-00001000 or 1000), or that at a path."""
    layout, saved, step = RunLayout(run_folder), Checkpoints(run_folder).steps(), step_of_name(name)
    # the links may be outdated if the run was killed, so the steps themselves decide
    by_name = {LAST: saved[-1:], BEST: rank(saved)}
    if name in by_name:
        folders = [each.path for each in by_name[name]]
    elif step is not None or name == AVERAGED:  # a folder of this name elsewhere is ./averaged
        folders = [layout.checkpoints / (name if step is None else step_folder_name(step))]
    else:
        folders = [folder for folder in (layout.checkpoints / name, expanded(name)) if (folder / META).exists()]
    if not folders or not folders[0].is_dir():
        links = [each for each, found in by_name.items() if found]
        names = [*(each.path.name for each in saved), *links, *([AVERAGED] if layout.averaged.is_dir() else [])]
        there = f"there are {', '.join(names)}: choose one of these, or the folder of a checkpoint, or" if names else ""
        raise UserError(
            f"no checkpoint {name} in {layout.checkpoints}; {there or 'there are none:'} run `make train` and "
            "`make average` first (with the same ARGS)"
        )
    if name == AVERAGED and saved:
        meta, newest = read_meta(folders[0]), saved[-1].step
        if max(meta.step, meta.newest_step) < newest:
            _warn(f"{folders[0]} is of step {meta.step}, training is at step {newest}: `make average` updates it")
    return folders[0]


def load_last_good(run_folder: Path) -> Checkpoint | None:
    """Return the newest undamaged checkpoint, or None if there is no checkpoint."""
    layout = RunLayout(run_folder)
    folders = [*layout.steps().values()]
    for folder in reversed(folders):
        try:
            return load(folder, trainer=True)
        except DamagedError as error:
            _warn(f"{error}; trying the one before it")
    if folders:
        raise UserError(
            f"all {len(folders)} checkpoints in {layout.checkpoints} are damaged: "
            "restore one, or delete that folder or choose another name= to start from the beginning"
        )
    return None


def _warn(message: str) -> None:
    if distributed.is_main():  # all processes of a run read the same folder
        print(f"warning: {for_this_installation(message)}", file=sys.stderr, flush=True)
