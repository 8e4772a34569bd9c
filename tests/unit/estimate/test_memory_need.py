"""How many devices must divide a model that does not fit on one, against sums by hand."""

import math

import pytest

from nmt.commands.describe import as_text, describe
from nmt.config.compose import compose
from nmt.config.schema import ModelConfig
from nmt.estimate.memory import Memory, activation_storage
from nmt.estimate.memory_need import MemoryNeed, divided_memory, largest_layer, memory_need, validation_bytes
from nmt.estimate.parameters import ParameterCounts, count_parameters

BILLIONS = (
    *("model.layers=24", "model.d_model=1536", "model.d_ff=6144", "model.heads=24", "describe.device=l4"),
    *("tokenizer.vocab_size=32000", "training.batch_tokens=24000", "training.device_tokens=2048"),
)
"""A model of 1.6 billion parameters on GPUs with 24 GB."""


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (100, MemoryNeed(fits=True, fits_in_small_batches=True, devices=2)),
        (70, MemoryNeed(fits=False, fits_in_small_batches=True, devices=2)),
        (52, MemoryNeed(fits=False, fits_in_small_batches=False, devices=2)),
        (51, MemoryNeed(fits=False, fits_in_small_batches=False, devices=3)),
        (12, MemoryNeed(fits=False, fits_in_small_batches=False, devices=42)),
        (10, MemoryNeed(fits=False, fits_in_small_batches=False, devices=0)),
    ],
)
def test_the_smallest_number_of_devices_that_fits_is_found(limit: float, expected: MemoryNeed) -> None:
    # 84 bytes can be divided, 10 cannot; the smallest micro-batches save 30 of 90
    assert memory_need(limit, used=90, smallest=60, divided=lambda count: 10 + math.ceil(84 / count)) == expected


@pytest.mark.parametrize(("half", "width"), [(False, 4), (True, 2)])
def test_devices_divide_all_but_the_gathered_weights(half: bool, width: int) -> None:
    config = ModelConfig(layers=3)
    size = ParameterCounts(embedding=1000, encoder=300, decoder=600)
    storage = activation_storage(gpu=True, half=half)
    whole = Memory(parameters=1900 * 6, gradients=1900 * 4, optimizer=1900 * 8, activations=77, process=5)
    assert largest_layer(config, size) == 200
    divided = divided_memory(whole, config, size, storage, devices=4)
    assert divided.parameters == 1900 + width * (1000 + 2 * 200)
    assert divided.gradients == 1900 + width * (1000 + 200) + 4 * 1000  # the word vectors' gradient in float32
    assert divided.optimizer == 2 * 1900
    assert (divided.activations, divided.process) == (77, 5)
    assert validation_bytes(whole, size, devices=4) == 6 * 1900 + 1900 + 2 * 1900 + 5


def test_a_model_of_over_a_billion_parameters_must_be_divided_between_gpus_of_24_gb() -> None:
    config = compose(BILLIONS)
    figures = describe(config, 1)
    total = figures.parameters.total
    assert total == count_parameters(config.model, 32_000, 32_000).total
    assert 1.2e9 < total < 1.7e9
    state = 18 * total  # 4 + 2 for weights, 4 for gradients, 8 for averages
    assert state > 24e9
    assert figures.need is not None
    assert not figures.need.fits_in_small_batches
    count = figures.need.devices
    text = as_text(config, figures)
    assert (
        f"more than the 24 GB of one l4, of which weights, gradients and averages take {state / 1e9:.1f} GB: divide "
        f"these between at least {count} devices by runtime.shard=weights" in text
    )
    assert count == 2
    embedding, layer = 32_000 * 1536, figures.parameters.decoder / 24
    divided = describe(compose([*BILLIONS, "runtime.shard=weights"]), 2).memory
    assert divided.parameters == pytest.approx(4 * total / 2 + 2 * embedding + 2 * 2 * layer, abs=9)
    assert divided.gradients == pytest.approx(4 * total / 2 + 2 * embedding + 2 * layer + 4 * embedding, abs=9)
    assert divided.optimizer == 8 * total / 2
    assert divided.total < 24e9


def test_a_larger_model_needs_more_devices_and_is_told_so_if_it_has_fewer() -> None:
    larger = (*BILLIONS, "model.layers=44", "runtime.shard=weights")
    figures = describe(compose(larger), 2)
    assert figures.need is not None
    count = figures.need.devices
    assert count > 2
    for devices in (count - 1, count):
        found = describe(compose(larger), devices)
        assert found.need is not None
        assert found.need.fits == (devices == count)
        assert ("more than the 24 GB" in as_text(compose(larger), found)) == (devices < count)
    # in a validation each has the whole model in float32 and bf16, and its part of the weights and averages
    total = figures.parameters.total
    assert 6 * total + 12 * total / count + 6e8 <= 24e9 < 6 * total + 12 * total / (count - 1) + 6e8


def test_smaller_micro_batches_are_advised_if_they_suffice() -> None:
    config = compose(["experiment=wmt14_en_de_big", "describe.device=v100"])
    figures = describe(config, 1)
    assert figures.need is not None
    assert (figures.need.fits, figures.need.fits_in_small_batches) == (False, True)
    assert "more than the 16 GB of one v100: lower training.device_tokens" in as_text(config, figures)


def test_a_run_that_fits_needs_no_advice_and_no_device_no_figures() -> None:
    config = compose(["describe.device=h100"])
    figures = describe(config, 1)
    assert figures.need is not None
    assert figures.need.fits
    assert "more than" not in as_text(config, figures)
    assert figures.as_json(config)["memory_need"] == figures.need._asdict()
    here = compose(["runtime.device=cpu"])
    assert describe(here, 1).as_json(here)["memory_need"] is None
