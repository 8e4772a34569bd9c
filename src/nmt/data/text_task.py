"""A task of preparation that a feature adds, after the text of all splits has been collected."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import PreparationTasks
from nmt.data.records import Manifest
from nmt.data.sources.source import Fingerprint
from nmt.discovery import features


class CollectedSplit(NamedTuple):
    """A split whose text has been written."""

    split: CorpusSplit
    fingerprint: Fingerprint


class TextTask(ABC):
    """One kind of task: see `Feature.text_tasks`."""

    verb: ClassVar[str]
    """Its name in the manifest; if there is one task per split, the split's name follows."""
    setting: ClassVar[str] = ""
    """The setting under `data.` that may name a file for the test set, whose checksum is the input `sha256`."""

    def name(self, split: str) -> str:
        """Return the name of the task of a split."""
        return f"{self.verb} {split}"

    @abstractmethod
    def run(self, config: Config, tasks: PreparationTasks, splits: Sequence[CollectedSplit]) -> list[str]:
        """Run the tasks whose inputs have changed; return the names of all."""

    def warnings(self, config: Config, manifest: Manifest) -> list[str]:
        """Return what the user should know of the results."""
        return []


def text_tasks() -> list[TextTask]:
    """Return the tasks of all features."""
    return [imported(code) for feature in features().values() for code in feature.text_tasks]
