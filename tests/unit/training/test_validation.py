"""The development set as training sees it."""

from pathlib import Path

import numpy as np
import pytest

from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.store import PairStore, writing
from nmt.training.validation import development_batches


@pytest.mark.parametrize(
    ("model", "longest"),
    [(ModelConfig(), (1024, 4096)), (ModelConfig(positions="learned", max_positions=300), (300, 300))],
)
def test_validation_truncates_sentences_as_decoding_does(
    tmp_path: Path, model: ModelConfig, longest: tuple[int, int]
) -> None:
    lengths = np.array([5000, 7], np.int32)
    with writing(tmp_path, "valid", ("en", "de"), 60) as writer:
        writer.append(np.full(5007, 9, np.uint16), lengths, np.full(5007, 9, np.uint16), lengths)
    batches = list(development_batches(PairStore.open(tmp_path, "valid"), TrainingConfig(), model))
    assert [
        max(side) for side in zip(*((each.source.longest, each.target.longest) for each in batches), strict=True)
    ] == list(longest)
