"""The names of the files and folders of a run."""

import re
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


class RunLayout:
    """The paths of a run's files, whether they exist or not."""

    def __init__(self, folder: Path) -> None:
        """Name the files in the run's folder, `outputs/<name>`."""
        self.folder = folder
        self.settings = folder / SETTINGS
        """The settings of the run, resolved."""
        self.environment = folder / "environment.json"
        """The code, the machine and the data that the run was trained with."""
        self.metrics = folder / "metrics.jsonl"
        """The events of training, one JSON object per line."""
        self.checkpoints = folder / "checkpoints"
        self.averaged = self.checkpoints / AVERAGED
        self.evaluation = folder / "eval"
        """The folder of scores and translations; those of other checkpoints and exports are in folders inside it."""
        self.report = folder / "report.html"

    def steps(self) -> dict[int, Path]:
        """Return the folders of the checkpoints, damaged or not, by their steps, earliest first."""
        found = {each.name.partition("-")[2]: each for each in self.checkpoints.glob("step-*")}
        return dict(sorted((int(step), folder) for step, folder in found.items() if step.isdigit()))

    def newest_checkpoint(self) -> Path | None:
        """Return the folder of the checkpoint of the highest step, damaged or not; None if there is none."""
        return next(reversed(self.steps().values()), None)


def scores_file(folder: Path, split: str) -> Path:
    """Return the path of the scores of a split in a folder of evaluations."""
    return folder / f"{split}.json"


def hypotheses_file(folder: Path, split: str) -> Path:
    """Return the path of the translations of a split in a folder of evaluations."""
    return folder / f"{split}.hyp.txt"


def step_folder_name(step: int) -> str:
    """Return the name of the folder of a step's checkpoint."""
    return f"step-{step:08d}"


def step_of_name(name: str) -> int | None:
    """Return the step in the name of a checkpoint (step-00001000 or 1000), or None if it contains no step."""
    step = re.fullmatch(r"(?:step-)?([0-9]{1,18})", name)
    return int(step[1]) if step else None


def export_folder(config: Config) -> Path:
    """Return the folder that an export is written to and read from."""
    export = config.export
    usual = config.run_folder / "export" / f"{export.target}-{export.quantization}"
    return expanded(export.folder) if export.folder else usual
