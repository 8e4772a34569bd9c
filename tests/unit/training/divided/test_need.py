"""`nmt describe` says that GPUs must divide a model that one cannot hold, against sums by hand."""

import pytest

from nmt.commands.describe import as_text, describe
from nmt.config.compose import compose
from nmt.estimate.parameters import count_parameters

BILLIONS = (
    *("model.layers=24", "model.d_model=1536", "model.d_ff=6144", "model.heads=24", "describe.device=l4"),
    *("tokenizer.vocab_size=32000", "training.batch_tokens=24000", "training.device_tokens=2048"),
)
"""A model of 1.6 billion parameters on GPUs with 24 GB."""


def test_a_model_of_over_a_billion_parameters_must_be_divided_between_gpus_of_24_gb() -> None:
    config = compose(BILLIONS)
    figures = describe(config, 1)
    total = figures.parameters.total
    assert total == count_parameters(config.model, 32_000, 32_000).total
    assert 1.2e9 < total < 1.7e9
    state = 18 * total  # 4 + 2 for weights, 4 for gradients, 8 for averages
    assert state > 24e9
    assert "GB of one l4" in as_text(config, figures)
    assert "runtime.shard=weights" in as_text(config, figures)
    embedding, layer = 32_000 * 1536, figures.parameters.decoder / 24
    divided = describe(compose([*BILLIONS, "runtime.shard=weights"]), 2).memory
    assert divided.parameters == pytest.approx(4 * total / 2 + 2 * embedding + 2 * 2 * layer, abs=9)
    assert divided.gradients == pytest.approx(4 * total / 2 + 2 * embedding + 2 * layer + 4 * embedding, abs=9)
    assert divided.optimizer == 8 * total / 2
    assert divided.total < 24e9
