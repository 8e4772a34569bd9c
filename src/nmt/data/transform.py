"""What may change the text of a global batch before it is split into micro-batches: see `Feature.transform`."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.data.batches import IntArray
from nmt.data.store import Pairs
from nmt.discovery import features
from nmt.text.tokenizer import Tokenizer


class BatchTransform(Protocol):
    """Changes the text of a global batch. Sentences may become longer (see `ROOM_TO_GROW`), but none is added."""

    def __call__(self, text: Pairs, pairs: IntArray, numbers: IntArray, epoch: int) -> Pairs:
        """Return some pairs of a text, changed and in their order.

        The result must be a function of the arguments alone, so that a resumed run, and each of several processes,
        gets the same text. `numbers` are those of the pairs in the training text.
        """


def transforms_for(config: Config, tokenizer: Tokenizer) -> list[BatchTransform]:
    """Return the transforms that the settings ask for."""
    makers = [imported(feature.transform) for feature in features().values() if feature.transform]
    return [made for maker in makers if (made := maker(config, tokenizer)) is not None]


def transformed(
    transforms: Sequence[BatchTransform], text: Pairs, pairs: IntArray, epoch: int
) -> tuple[Pairs, IntArray]:
    """Return the text of a global batch after all transforms, and the indices of its pairs in this text."""
    numbers = pairs
    for transform in transforms:
        text = transform(text, pairs, numbers, epoch)
        pairs = np.arange(len(text))
    return text, pairs
