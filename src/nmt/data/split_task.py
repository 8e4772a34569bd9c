"""A task of preparation that a feature adds for each split, and that writes a file beside the text."""

from abc import ABC, abstractmethod
from typing import ClassVar

from nmt.config.schema import Config
from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import PreparationTasks
from nmt.data.sources.source import Fingerprint
from nmt.feature import features, imported


class SplitTask(ABC):
    """One kind of task: see `Feature.split_tasks`."""

    verb: ClassVar[str]
    """The first word of its name in the manifest; the second is that of the split."""
    setting: ClassVar[str]
    """The setting under `data.` that may name a file for the test set, whose checksum is the input `sha256`."""

    def name(self, split: str) -> str:
        """Return the name of the task of a split."""
        return f"{self.verb} {split}"

    @abstractmethod
    def run(self, config: Config, tasks: PreparationTasks, split: CorpusSplit, fingerprint: Fingerprint) -> list[str]:
        """Write the file of a split after its text; return the name of the task, or nothing if it has no file."""


def split_tasks() -> list[SplitTask]:
    """Return the tasks of all features."""
    return [imported(code) for feature in features().values() for code in feature.split_tasks]
