"""The estimates for several GPUs follow from the counts and data sheets that docs/scaling.md names."""

import math

import numpy as np
import pytest

from nmt.config.compose import compose
from nmt.data.batches import full_micro_batch_tokens
from nmt.data.loader import DataPosition, global_batches
from nmt.data.shapes import Shapes
from nmt.data.synthetic import synthetic_pairs
from nmt.training.graph_shapes import shape_of
from scaling import __main__ as scaling
from scaling import shapes as counted

PUBLISHED = {  # tokens per side: learning rate, warmup, betas
    111_000: (1.9e-3, 750, 0.9, 0.98),
    737_000: (1.732e-3, 400, 0.86, 0.92),
}


def test_one_gpu_has_nothing_to_reduce() -> None:
    assert scaling.reduction_seconds(252e6, 1) == 0


def test_reductions_take_the_time_of_a_ring() -> None:
    inside = 2 * 7 / 8 * 252e6 / (0.8 * 450e9)
    assert scaling.reduction_seconds(252e6, 8) == pytest.approx(inside)
    between = 2 * 7 / 8 * (252e6 / 8) / (0.8 * 50e9)
    assert scaling.reduction_seconds(252e6, 64) == pytest.approx(inside + between)


def test_a_step_waits_for_computing_or_launching_and_the_exposed_reduction() -> None:
    assert scaling.Speed(computing=5.0, launching=3.0, reducing=2.0, exposed=0.5).step == 5.5
    assert scaling.Speed(computing=2.0, launching=3.0, reducing=2.0, exposed=0.5).step == 3.5


def test_distinct_words_are_those_that_a_sample_contains() -> None:
    weights = 1 / (np.arange(1, 2001) + scaling.ZIPF_OFFSET)
    samples = [np.random.default_rng(seed).choice(2000, 3000, p=weights / weights.sum()) for seed in range(5)]
    mean = np.mean([len(np.unique(sample)) for sample in samples])
    assert scaling.distinct_words(3000, 2000) == pytest.approx(mean, rel=0.02)


def test_the_last_gradients_are_always_exposed_and_bf16_halves_them() -> None:
    words = ["experiment=wmt14_en_de_big", "describe.device=h100"]
    exact, rounded = (
        scaling.speed(compose([*words, f"training.reduce_precision={each}"]), 8) for each in ("fp32", "bf16")
    )
    assert rounded.reducing == pytest.approx(exact.reducing / 2)
    assert exact.reducing < scaling.BACKWARD_SHARE * exact.computing  # so that only the last ones are exposed
    assert rounded.exposed == pytest.approx(exact.exposed / 2)
    late = scaling.late_bytes(compose(words))
    assert 26e6 + 4 * 1024 * 13_000 < late < 26e6 + 4 * 1024 * 15_000
    assert exact.exposed == pytest.approx(scaling.reduction_seconds(late, 8))


def test_the_table_has_a_line_for_each_number_of_gpus() -> None:
    lines = scaling.table(["experiment=modern/wmt14_en_de_base_400k"]).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["1", "8", "64"]
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize("tokens", [100_000, 400_000])
def test_recipes_for_larger_batches_lie_between_the_published_ones(tokens: int) -> None:
    base, larger = compose([]).training, compose([f"experiment=modern/wmt14_en_de_base_{tokens // 1000}k"]).training
    assert larger.batch_tokens == tokens
    assert larger.steps * larger.batch_tokens == base.steps * base.batch_tokens
    (low, below), (high, above) = PUBLISHED.items()
    share = max(0.0, math.log(tokens / low) / math.log(high / low))
    recipe = larger.learning_rate, larger.warmup_steps, larger.adam_beta1, larger.adam_beta2
    for found, first, last, digits in zip(recipe, below, above, (0.01, 0.03, 0.005, 0.005), strict=True):
        assert found == pytest.approx(first * (last / first) ** share, rel=digits)


def test_sizes_are_those_of_the_assembled_micro_batches() -> None:
    text = synthetic_pairs(1000, 1000, pairs=3000)
    config = compose(["training.batch_tokens=6000"])
    for gpus in (1, 4):
        shapes = Shapes.on_gpu(full_micro_batch_tokens(6000, 0, gpus))
        stream = global_batches(
            text, batch_tokens=6000, device_tokens=0, seed=config.seed, start=DataPosition(), rank=0, devices=gpus,
            shapes=shapes,
        )  # fmt: skip
        found = counted.shapes_of_steps(config, gpus, text)
        for expected in found[:10]:
            (batch,) = next(stream).micro_batches
            assert shape_of(batch.source, batch.target) == expected
            kept = [
                each for side in (batch.source, batch.target) for each in (side.tokens, side.positions, side.offsets)
            ]
            assert counted.input_bytes(expected) == sum(each.nbytes for each in kept)


def test_graphs_take_the_place_of_the_launches_of_the_model() -> None:
    assert counted.launches(63_000_000, 1, 1) == 567 <= scaling.LAUNCHES < 570
    assert counted.launches(63_000_000, 1, 1, graphs=True) == 2 + 56 + 4 + 35
    assert counted.launches(63_000_000, 2, 1) - counted.launches(63_000_000, 1, 1) == 124 + 56 + 352
    # of 240 MiB of gradients, nine buckets have more than 25 MiB, and the first and the last one may have less
    assert counted.launches(63_000_000, 1, 8) - counted.launches(63_000_000, 1, 1) == 9 + 2 + 4


def test_frequent_sizes_cover_at_least_as_many_steps_as_the_recorded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MAX_SHAPES", 3)
    config = compose(["training.batch_tokens=3000", "describe.device=h100"])
    each = counted.count(config, 8, synthetic_pairs(37_000, 37_000, pairs=20_000))
    assert each.shapes > 3
    assert 0 < each.share_replayed < each.share_of_recorded <= each.share_of_frequent < 1
