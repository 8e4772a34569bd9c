"""Read the files of a run, once for the whole report."""

from dataclasses import dataclass, replace
from pathlib import Path

from nmt.config.saved import load_config
from nmt.config.tree import Config
from nmt.errors import UserError, nearest
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.evaluation.split import Split, read_split
from nmt.runs.copies import fetch_other_run
from nmt.runs.environment import Environment, read_environment
from nmt.runs.layout import RunLayout, hypotheses_file, scores_file
from nmt.runs.scores import scores_folder, scores_to_show
from nmt.runs.tracker import MetricsEvent, read_metrics
from nmt.text.lines import read_lines


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A split with its translations and their scores."""

    scores: EvaluationRecord
    text: Split
    hypotheses: list[str]


@dataclass(frozen=True, slots=True)
class Run:
    """The files of a run."""

    name: str
    """The name of the run, which may have been another one when it was trained."""
    folder: Path
    data_folder: Path
    config: Config
    """The settings that it was trained with."""
    environment: Environment | None
    """None if the run has no environment.json."""
    events: list[MetricsEvent]
    """The lines of metrics.jsonl."""
    scores_folder: Path
    """The folder of the scores to show."""

    def splits(self) -> list[str]:
        """Return the splits that were scored, test first."""
        found = {path.stem for path in self.scores_folder.glob("*.json")}
        return sorted(found, key=lambda split: (split != "test", split))

    def scores(self, split: str) -> EvaluationRecord:
        """Return the scores of a split, as `eval` wrote them."""
        return read_evaluation(scores_file(self.scores_folder, split))

    def all_scores(self) -> dict[str, EvaluationRecord]:
        """Return all scores by their path in eval/, such as test or last/test; the scores to show come first."""
        root = RunLayout(self.folder).evaluation
        files = [scores_file(self.scores_folder, split) for split in self.splits()]
        files += sorted(file for file in root.rglob("*.json") if file.parent != self.scores_folder)
        return {str(file.relative_to(root)).removesuffix(".json"): read_evaluation(file) for file in files}

    def evaluated(self, split: str) -> Evaluated:
        """Return the text of a split with its translations and scores."""
        text, file = read_split(self.data_folder, self.config.data, split), hypotheses_file(self.scores_folder, split)
        if not file.is_file():
            raise UserError(f"{file} is not there: run `make eval`")
        hypotheses = list(read_lines(file))
        if len(hypotheses) != len(text.sources):
            raise UserError(f"the text of {split} has changed since it was translated: run `make eval` again")
        return Evaluated(self.scores(split), text, hypotheses)

    def training_seconds(self) -> float:
        """Return the seconds that training took, without the time between an interruption and a resume."""
        steps = zip(self.events, self.events[1:], strict=False)
        return sum(after.time - before.time for before, after in steps if after.event != "start")


def read_run(config: Config, entry: str) -> Run:
    """Read a run and its scores; an entry NAME:ENGINE names those of the run alone by another engine."""
    name, _, engine = entry.partition(":")
    fetch_other_run(config, name)
    named = replace(config, name=name)
    if engine:
        named = replace(named, engine=engine, decoding=replace(config.decoding, ensemble=[]))
    scores, folder = scores_folder(named) if engine else scores_to_show(named), named.run_folder
    layout = RunLayout(folder)
    if not layout.settings.is_file():
        others = sorted(path.parent.name for path in folder.parent.glob("*/config.yaml") if path.is_file())
        advice = nearest(folder.name, others) if others else "run `make train` first (with the same ARGS)"
        raise UserError(f"there is no run {folder.name} in {folder.parent}: {advice}")
    trained = load_config(layout.settings)
    environment = read_environment(layout.environment) if layout.environment.is_file() else None
    events, corpus = read_metrics(layout.metrics), config.corpora_folder / trained.data.corpus
    return Run(entry, folder, corpus, trained, environment, events, scores)
