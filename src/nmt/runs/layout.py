"""The names of the files and folders of a run."""

import re
from dataclasses import dataclass
from pathlib import Path

from nmt.config.folders import expanded
from nmt.config.tree import Config

WEIGHTS = "model.safetensors"
TRAINER = "trainer.pt"
SETTINGS = "config.yaml"
META = "meta.json"
"""The files of a checkpoint besides those of the tokenizer."""
EXPORT_RECORD = "export.json"
"""The file of an export that says what it is."""
LAST, BEST, AVERAGED = "last", "best", "averaged"
"""Checkpoints that are named by what they are instead of by their step."""


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The paths of a run's files, whether they exist or not."""

    folder: Path
    """The run's folder, `outputs/<name>`."""

    @property
    def settings(self) -> Path:
        """The settings of the run, resolved."""
        return self.folder / SETTINGS

    @property
    def environment(self) -> Path:
        """The code, the machine and the data that the run was trained with."""
        return self.folder / "environment.json"

    @property
    def metrics(self) -> Path:
        """The events of training, one JSON object per line."""
        return self.folder / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def averaged(self) -> Path:
        """The averaged checkpoint."""
        return self.checkpoints / AVERAGED

    def steps(self) -> dict[int, Path]:
        """Return the folders of the checkpoints, damaged or not, by their steps, earliest first."""
        found = {step_of_folder_name(each.name): each for each in self.checkpoints.glob("step-*")}
        return {step: found[step] for step in sorted(step for step in found if step is not None)}

    def newest_checkpoint(self) -> Path | None:
        """Return the folder of the checkpoint of the highest step, damaged or not; None if there is none."""
        return next(reversed(self.steps().values()), None)

    @property
    def evaluation(self) -> Path:
        """The folder of scores and translations; those of other checkpoints and exports are in folders inside it."""
        return self.folder / "eval"

    @property
    def report(self) -> Path:
        """The report of the run."""
        return self.folder / "report.html"


def scores_file(folder: Path, split: str) -> Path:
    """Return the path of the scores of a split in a folder of evaluations."""
    return folder / f"{split}.json"


def hypotheses_file(folder: Path, split: str) -> Path:
    """Return the path of the translations of a split in a folder of evaluations."""
    return folder / f"{split}.hyp.txt"


def step_folder_name(step: int) -> str:
    """Return the name of the folder of a step's checkpoint."""
    return f"step-{step:08d}"


def step_of_folder_name(name: str) -> int | None:
    """Return the step of a checkpoint's folder, or None if the name is not that of a step's folder."""
    match = re.fullmatch(r"step-([0-9]{8,})", name)
    return int(match[1]) if match else None


def step_of_name(name: str) -> int | None:
    """Return the step in the name of a checkpoint (step-00001000 or 1000), or None if it contains no step."""
    step = re.fullmatch(r"(?:step-)?([0-9]{1,18})", name)
    return int(step[1]) if step else None


def export_folder(config: Config) -> Path:
    """Return the folder that an export is written to and read from."""
    export = config.export
    usual = config.run_folder / "export" / f"{export.target}-{export.quantization}"
    return expanded(export.folder) if export.folder else usual
