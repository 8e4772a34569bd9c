"""How many devices must divide a model that does not fit on one, against sums by hand."""

import math

import pytest

from nmt.commands.describe import as_text, describe
from nmt.config.compose import compose
from nmt.config.schema import ModelConfig
from nmt.estimate.memory import Memory, activation_storage
from nmt.estimate.memory_need import MemoryNeed, divided_memory, largest_layer, memory_need, validation_bytes
from nmt.estimate.parameters import ParameterCounts


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
