"""The task of preparation that counts the overlap, and the warning about it."""

from collections.abc import Sequence
from dataclasses import asdict

from nmt.config.data import SIDE, corpora_of, is_text
from nmt.config.tree import Config
from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import PreparationTasks
from nmt.data.overlap import Overlap, count_overlap
from nmt.data.progress import PairProgress
from nmt.data.records import JsonObject, Manifest, collect_task, naming_damage

MIN_SHARE = 0.01
"""The share of a split's sentences from which there is a warning: fewer hardly change its scores."""


TASK = "overlap"
"""The name of the task in the manifest."""


def record_overlap(config: Config, tasks: PreparationTasks, splits: Sequence[CorpusSplit]) -> str:
    """Count the development and test sentences that are also in the training text; return the name of the task."""
    training_text_first = sorted(splits, key=lambda each: not each.is_training_text)

    def count() -> JsonObject:
        pairs = sum(tasks.manifest.collected(each.name).kept for each in training_text_first if each.is_training_text)
        with PairProgress(TASK, pairs) as progress:
            counts = count_overlap(config.data_folder, training_text_first, progress.advance)
        return {split: asdict(overlap) for split, overlap in counts.items()}

    texts = {each.name: tasks.outputs(collect_task(each.name)) for each in training_text_first}
    inputs: dict[str, object] = {"text": texts}
    if len({each.languages for each in training_text_first}) > 1:
        inputs["by_language"] = True  # earlier versions compared the sides without regard to their languages
    tasks.run(TASK, inputs, [], count)
    return TASK


def overlap_warnings(config: Config, manifest: Manifest) -> list[str]:
    """Return a line for each split that has sentences of the training text."""
    repeats = not is_text(config.data.target_lang)  # different sentences often have the same tree
    counts, hint = _counts(manifest).items(), _hint(config)
    return [_warning(split, each) + hint for split, each in counts if gives_away(each, targets_repeat=repeats)]


@naming_damage
def _counts(manifest: Manifest) -> dict[str, Overlap]:
    return {split: Overlap(**counts) for split, counts in manifest.result(TASK).items()}


def gives_away(overlap: Overlap, *, targets_repeat: bool) -> bool:
    """Return whether the training text gives away a split; equal targets say nothing if they repeat anyway."""
    return max(overlap.source, 0 if targets_repeat else overlap.target) > MIN_SHARE * overlap.sentences


def _warning(split: str, overlap: Overlap) -> str:
    counts = (overlap.source, overlap.target, overlap.pair)
    source, target, pair = (f"{count:,} ({count / overlap.sentences:.1%})" for count in counts)
    return (
        f"of {overlap.sentences:,} {split} pairs, the source of {source} and the target of {target} are also in the "
        f"training text, and {pair} as the same pair: the scores may be too good"
    )


def _hint(config: Config) -> str:
    """Return the setting that drops such training pairs, of the first corpus that does not have it."""
    corpora = corpora_of(config.data).values()
    without = (prefix for data, prefix in corpora if data.drop_overlap != SIDE)
    return next((f" ({prefix}drop_overlap={SIDE} drops such pairs)" for prefix in without), "")
