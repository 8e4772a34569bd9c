"""The task of preparation that counts the overlap, and the warning about it."""

from collections.abc import Sequence
from dataclasses import asdict

from nmt.config.schema import Config
from nmt.data.manifest import PreparationTasks
from nmt.data.progress import PairProgress
from nmt.data.records import JsonObject, Manifest, collect_task, naming_damage
from nmt.data.task import task_of
from nmt.data.text_task import CollectedSplit, TextTask
from nmt.features.text_overlap.overlap import Overlap, count_overlap


class _OverlapTask(TextTask):
    """Counts the development and test sentences that are also in the training text."""

    verb = "overlap"

    def run(self, config: Config, tasks: PreparationTasks, splits: Sequence[CollectedSplit]) -> list[str]:
        """See `TextTask.run`."""
        training_text_first = sorted((each.split for each in splits), key=lambda each: not each.is_training_text)

        def count() -> JsonObject:
            pairs = sum(
                tasks.manifest.collected(each.name).kept for each in training_text_first if each.is_training_text
            )
            with PairProgress(self.verb, pairs) as progress:
                counts = count_overlap(config.data_folder, training_text_first, progress.advance)
            return {split: asdict(overlap) for split, overlap in counts.items()}

        texts = {each.name: tasks.outputs(collect_task(each.name)) for each in training_text_first}
        tasks.run(self.verb, {"text": texts}, [], count)
        return [self.verb]

    def warnings(self, config: Config, manifest: Manifest) -> list[str]:
        """Return a line for each split that has sentences of the training text."""
        repeats = task_of(config.data.target_lang).repeats_targets
        counts = _counts(manifest).items()
        return [_warning(split, each) for split, each in counts if gives_away(each, targets_repeat=repeats)]


OVERLAP = _OverlapTask()


@naming_damage
def _counts(manifest: Manifest) -> dict[str, Overlap]:
    return {split: Overlap(**counts) for split, counts in manifest.result(OVERLAP.verb).items()}


def gives_away(overlap: Overlap, *, targets_repeat: bool) -> bool:
    """Return whether the training text gives away a split; equal targets say nothing if they repeat anyway."""
    return bool(overlap.source or (overlap.target and not targets_repeat))


def _warning(split: str, overlap: Overlap) -> str:
    counts = (overlap.source, overlap.target, overlap.pair)
    source, target, pair = (f"{count:,} ({count / overlap.sentences:.1%})" for count in counts)
    return (
        f"of {overlap.sentences:,} {split} sentences, {source} are also in the training text on the source "
        f"side, {target} on the target side, and {pair} as the same pair: the scores may be too good "
        "(data.drop_overlap=side drops such pairs)"
    )
