"""Read the files of a run, once for the whole report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.schema import Config
from nmt.data.layout import CorpusLayout
from nmt.data.manifest import read_manifest
from nmt.data.records import Manifest
from nmt.errors import UserError, nearest
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.runs.layout import RunLayout, hypotheses_file, scores_file
from nmt.runs.metrics import MetricsEvent, read_metrics
from nmt.storage.files import checksum, read_json
from nmt.text.lines import read_lines


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A split with its translations and their scores."""

    split: str
    scores: EvaluationRecord
    sources: list[str]
    references: list[str]
    hypotheses: list[str]


@dataclass(frozen=True, slots=True)
class Run:
    """A run's folder and the data that it was trained on."""

    folder: Path
    data_folder: Path
    config: Config
    """The settings it was trained with."""
    environment: Mapping[str, Any]
    events: list[MetricsEvent]
    scores_folder: Path
    """The folder of the scores that are shown."""

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.name

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.config.data.source_lang, self.config.data.target_lang

    def events_named(self, event: str) -> list[MetricsEvent]:
        """Return the events of one kind: start, train or valid."""
        return [line for line in self.events if line.event == event]

    def splits(self) -> list[str]:
        """Return the splits that were scored, test first."""
        found = {path.stem for path in self.scores_folder.glob("*.json")}
        return sorted(found, key=lambda split: (split != "test", split))

    def scores(self, split: str) -> EvaluationRecord:
        """Return the scores of a split, as `eval` wrote them."""
        return read_evaluation(scores_file(self.scores_folder, split))

    def all_scores(self) -> dict[str, EvaluationRecord]:
        """Return all scores of the run by their path in eval/ (test, last/test), those of `splits` first."""
        root = RunLayout(self.folder).evaluation
        files = [scores_file(self.scores_folder, split) for split in self.splits()]
        files += sorted(file for file in root.rglob("*.json") if file.parent != self.scores_folder)
        return {str(file.relative_to(root)).removesuffix(".json"): read_evaluation(file) for file in files}

    def evaluated(self, split: str) -> Evaluated:
        """Return the text of a split with its translations and scores."""
        files = [self.data_folder / f"{split}.{language}" for language in self.languages]
        files.append(hypotheses_file(self.scores_folder, split))
        for file in files:
            if not file.is_file():
                raise UserError(f"{file} is not there: run `make {'eval' if file == files[2] else 'data'}`")
        lines = [list(read_lines(file)) for file in files]
        if len({len(side) for side in lines}) > 1:
            raise UserError(f"the files of {split} differ in length; its text has changed since: run `make eval` again")
        return Evaluated(split, self.scores(split), *lines)

    def records(self) -> Manifest:
        """Return the manifest of the prepared data."""
        manifest = read_manifest(self.data_folder)
        if not manifest.tasks:
            raise UserError(f"there is no prepared data in {self.data_folder}: run `make data` with the same settings")
        return manifest

    def data_has_changed(self) -> bool:
        """Return whether the data was prepared again after the run began."""
        then = (self.environment.get("data") or {}).get("manifest")
        manifest = CorpusLayout(self.data_folder).manifest
        return bool(then) and manifest.is_file() and checksum(manifest) != then

    def seconds(self) -> float:
        """Return the seconds from the start of training to its end, without the time between an end and a resume."""
        steps = zip(self.events, self.events[1:], strict=False)
        return float(np.sum([after.time - before.time for before, after in steps if after.event != "start"]))


def read_run(folder: Path, data: Path, parse: Callable[[str], Config], scores: Path | None = None) -> Run:
    """Read a run.

    Args:
        folder: The folder of the run.
        data: The folder of the prepared corpora.
        parse: Parses a config.yaml into settings.
        scores: The folder of the scores to show; by default those of the run's own checkpoint.
    """
    layout = RunLayout(folder)
    path = layout.settings
    if not path.is_file():
        raise UserError(f"there is no run {folder.name} in {folder.parent}: {_others(folder)}")
    config = parse(path.read_text(encoding="utf-8"))
    environment, metrics = layout.environment, layout.metrics
    return Run(
        folder,
        data / config.data.corpus,
        config,
        read_json(environment) if environment.is_file() else {},
        read_metrics(metrics) if metrics.is_file() else [],
        scores or layout.evaluation,
    )


def _others(folder: Path) -> str:
    others = sorted(path.parent.name for path in folder.parent.glob("*/config.yaml"))
    return nearest(folder.name, others) if others else "run `make train` first (with the same ARGS)"
