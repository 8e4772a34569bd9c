"""The development set as training sees it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.store import PairStore, writing
from nmt.model.build import build_model
from nmt.training.validation import development_batches


@pytest.mark.parametrize(
    ("model", "longest"),
    [
        (ModelConfig(layers=1), (1024, 4096)),
        (ModelConfig(layers=1, positions="learned", max_positions=300), (300, 300)),
    ],
)
def test_validation_truncates_sentences_as_decoding_does(
    tmp_path: Path, model: ModelConfig, longest: tuple[int, int]
) -> None:
    lengths = np.array([5000, 7], np.int32)
    with writing(tmp_path, "valid", ("en", "de"), 60) as writer:
        writer.append(np.full(5007, 9, np.uint16), lengths, np.full(5007, 9, np.uint16), lengths)
    valid, built = PairStore.open(tmp_path, "valid"), build_model(model, 60, 60)
    batches = list(development_batches(valid, TrainingConfig(), built, Machine(torch.device("cpu"), torch.float32)))
    assert [
        max(side) for side in zip(*((each.source.longest, each.target.longest) for each in batches), strict=True)
    ] == list(longest)
