"""The prepared development and test text of all corpora, which some filters compare the training text with."""

from collections.abc import Iterator, Sequence

from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data.corpora import CorpusSplit, corpus_splits
from nmt.data.filters.pipeline import Filter, training_filters
from nmt.data.layout import CorpusLayout
from nmt.data.manifest import PreparationTasks
from nmt.data.overlap import HeldOutPair
from nmt.data.records import JsonObject, collect_task
from nmt.data.tags import untagged
from nmt.text.lines import read_lines


def informed(chosen: Sequence[Filter], config: Config, data: DataConfig) -> list[Filter]:
    """Return filters of a corpus with what they must know of the development and test text, which is collected."""
    return [each.knowing(data, lambda: held_out_pairs(config)) for each in chosen]


def held_out_pairs(config: Config) -> Iterator[HeldOutPair]:
    """Yield the pairs of the prepared development and test text, without the tags of their corpora."""
    for split in _held_out_splits(config.data):
        sides = map(read_lines, CorpusLayout(config.data_folder).texts(split.name, split.languages))
        for source, target in zip(*sides, strict=True):
            yield HeldOutPair(split.languages, untagged(source, split.data.tag), target)


def held_out_checksums(config: Config, tasks: PreparationTasks, split: CorpusSplit) -> JsonObject:
    """Return an input of the task that collects a split: the development and test text, if its filters read that."""
    if not split.is_training_text or not any(each.learn for each in training_filters(split.data)):
        return {}
    texts = {each.name: tasks.outputs(collect_task(each.name)) for each in _held_out_splits(config.data)}
    return {"held_out_text": texts}


def _held_out_splits(data: DataConfig) -> list[CorpusSplit]:
    return [each for each in corpus_splits(data) if not each.is_training_text]
