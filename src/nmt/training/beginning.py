"""Where a new run begins, if not with random weights: see `Feature.begins`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.discovery import features
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoints import Checkpoint
from nmt.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The weights that a new run begins with, and where they come from."""

    checksum: str
    """The checksum of the weights, which must be the same in all processes."""
    record: Mapping[str, Any]
    """Where the weights come from, as JSON: the `origin` of each checkpoint of the run."""
    give_weights: Callable[[TranslationModel, Tokenizer], str]
    """Give a new model the weights, with word vectors for the run's tokenizer; return a line for the user."""


def find_beginning(config: Config) -> Beginning | None:
    """Return where a new run begins; None if it begins with random weights."""
    found = (imported(feature.begins)(config) for feature in features().values() if feature.begins)
    return next((each for each in found if each is not None), None)


def origin_record(checkpoint: Checkpoint | None, beginning: Beginning | None) -> Mapping[str, Any] | None:
    """Return the record of the model that a run began from; a resumed run has it in its checkpoint."""
    if checkpoint is not None:
        return checkpoint.meta.origin
    return None if beginning is None else beginning.record
