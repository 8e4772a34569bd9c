"""The task of parsing: the target side is linearised trees."""

from nmt.config.data import DataConfig
from nmt.data.records import JsonObject
from nmt.data.task import Task
from nmt.parsing.lines import check_references
from nmt.parsing.symbols import train_on_files

TYPICAL_SYMBOLS = 100
"""Size of the vocabulary that estimates assume: a treebank has some 30 labels of phrases, and the tags."""


def settings(data: DataConfig) -> JsonObject:
    """Return how tags are written."""
    return {"pos_tags": data.pos_tags}


TREES = Task(
    settings=settings,
    check=check_references,
    train_tokenizer=train_on_files,
    typical_vocabulary=TYPICAL_SYMBOLS,
    repeats_targets=True,
    required_scores=("bracket_f1",),
)
