"""What a run has left on the disk, read once for all that is shown of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.schema import Config
from nmt.data.manifest import MANIFEST, read_records
from nmt.data.sources.files import read_lines
from nmt.errors import UserError, nearest
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import MetricsEvent, read_metrics
from nmt.storage.files import checksum, read_json

SCORES = {"bleu": "BLEU", "bleu_paper": "BLEU as in the paper", "chrf": "chrF", "ter": "TER"}
"""The scores of an evaluation, and what people call them."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A split with its translations and their scores."""

    split: str
    scores: Mapping[str, Any]
    """The content of eval/<split>.json."""
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
    """Where the scores lie that are shown."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.config.name

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return self.config.data.source_lang, self.config.data.target_lang

    def told(self, event: str) -> list[MetricsEvent]:
        """The events of a kind."""
        return [line for line in self.events if line.event == event]

    def splits(self) -> list[str]:
        """Return the splits that were scored, test first."""
        found = {path.stem for path in self.scores_folder.glob("*.json")}
        return sorted(found, key=lambda split: (split != "test", split))

    def scores(self, split: str) -> Mapping[str, Any]:
        """Return the scores of a split, as `eval` wrote them."""
        return _read_scores(self.scores_folder / f"{split}.json")

    def all_scores(self) -> dict[str, Mapping[str, Any]]:
        """Return all scores of the run, first those of `splits`, by their place in eval/: test, last/test."""
        root = RunLayout(self.folder).evaluation
        files = [self.scores_folder / f"{split}.json" for split in self.splits()]
        files += sorted(file for file in root.rglob("*.json") if file.parent != self.scores_folder)
        return {str(file.relative_to(root)).removesuffix(".json"): _read_scores(file) for file in files}

    def evaluated(self, split: str) -> Evaluated:
        """A split's scores beside its text and its translations."""
        files = [self.data_folder / f"{split}.{language}" for language in self.languages]
        files.append(self.scores_folder / f"{split}.hyp.txt")
        for file in files:
            if not file.is_file():
                raise UserError(f"{file} is not there: run `make {'eval' if file == files[2] else 'data'}`")
        lines = [list(read_lines(file)) for file in files]
        if len({len(side) for side in lines}) > 1:
            raise UserError(f"the files of {split} differ in length; its text has changed since: run `make eval` again")
        return Evaluated(split, self.scores(split), *lines)

    def records(self) -> dict[str, Any]:
        """What the manifest says of each step of the data's preparation."""
        records = read_records(self.data_folder)
        if not records:
            raise UserError(f"there is no prepared data in {self.data_folder}: run `make data` with the same settings")
        return records

    def data_has_changed(self) -> bool:
        """Whether the data was prepared anew since the run began."""
        then = (self.environment.get("data") or {}).get("manifest")
        manifest = self.data_folder / MANIFEST
        return bool(then) and manifest.is_file() and checksum(manifest) != then

    def seconds(self) -> float:
        """Time from the start of training to its end, without the time between its parts."""
        steps = zip(self.events, self.events[1:], strict=False)
        return float(np.sum([after.time - before.time for before, after in steps if after.event != "start"]))


def _read_scores(file: Path) -> Mapping[str, Any]:
    scores = read_json(file)
    if not isinstance(scores, dict) or not all("score" in scores.get(name, {}) for name in SCORES):
        raise UserError(f"{file} holds no scores: run `make eval` to write it anew")
    return scores


def read_run(folder: Path, data: Path, parse: Callable[[str], Config], scores: Path | None = None) -> Run:
    """Read a run.

    Args:
        folder: Where it lies.
        data: Where prepared corpora lie.
        parse: Makes settings of a config.yaml.
        scores: Where the scores to show lie; by default those of the run's own checkpoint.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise UserError(f"there is no run {folder.name} in {folder.parent}: {_others(folder)}")
    config = parse(path.read_text(encoding="utf-8"))
    environment, metrics = folder / "environment.json", RunLayout(folder).metrics
    return Run(
        folder,
        data / config.data.corpus,
        config,
        read_json(environment) if environment.is_file() else {},
        read_metrics(metrics) if metrics.is_file() else [],
        scores or RunLayout(folder).evaluation,
    )


def _others(folder: Path) -> str:
    others = sorted(path.parent.name for path in folder.parent.glob("*/config.yaml"))
    return nearest(folder.name, others) if others else "run `make train` first (with the same ARGS)"
