"""The task of parsing: the target side is linearised trees."""

from typing import cast

from nmt.config.schema import DataConfig
from nmt.data.records import JsonObject, Overlap
from nmt.data.task import Task
from nmt.features.trees.lines import check_references, repaired
from nmt.features.trees.settings import TreeData
from nmt.features.trees.symbols import train_on_files

TYPICAL_SYMBOLS = 100
"""Size of the vocabulary that estimates assume: a treebank has some 30 labels of phrases, and the tags."""


def settings(data: DataConfig) -> JsonObject:
    """Return how tags are written."""
    return {"pos_tags": cast(TreeData, data).pos_tags}


def is_overlap(overlap: Overlap) -> bool:
    """Return whether sentences overlap; different sentences may well have the same tree."""
    return bool(overlap.source or overlap.pair)


TREES = Task(
    settings=settings,
    check=check_references,
    train_tokenizer=train_on_files,
    typical_vocabulary=TYPICAL_SYMBOLS,
    is_overlap=is_overlap,
    finish=repaired,
    required_scores=("bracket_f1",),
)
