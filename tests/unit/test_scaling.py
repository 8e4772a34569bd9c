"""The estimates for several GPUs follow from the counts and data sheets that docs/scaling.md names."""

import math

import pytest

from nmt.config.compose import compose
from nmt.data.batching import Batching
from nmt.data.loader import DataPosition, global_batches
from nmt.data.micro_batch_size import full_micro_batch_tokens
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


def test_a_step_waits_for_the_gpus_or_for_the_processor() -> None:
    assert scaling.Speed(computing=5.0, launching=3.0, reducing=2.0).step == 7.0
    assert scaling.Speed(computing=2.0, launching=3.0, reducing=0.5).step == 3.0


def test_gradients_in_bf16_take_half_the_time() -> None:
    words = ["experiment=wmt14_en_de_big", "describe.device=h100"]
    exact, rounded = (
        scaling.speed(compose([*words, f"training.reduce_precision={each}"]), 8) for each in ("fp32", "bf16")
    )
    assert rounded.reducing == pytest.approx(exact.reducing / 2)
    assert rounded._replace(reducing=exact.reducing) == exact


def test_further_micro_batches_are_replayed() -> None:
    words = ["experiment=wmt14_en_de_base", "describe.device=h100"]
    one, four = (scaling.speed(compose([*words, *more]), 1) for more in ([], ["training.device_tokens=6250"]))
    assert one.launching == scaling.STEP_SECONDS
    assert four.launching == pytest.approx(scaling.STEP_SECONDS + 3 * scaling.REPLAY_SECONDS)


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
            text,
            Batching(6000, seed=config.seed),
            device_tokens=0,
            start=DataPosition(),
            rank=0,
            devices=gpus,
            shapes=shapes,
        )
        found = counted.shapes_of_steps(config, gpus, text)
        for expected in found[:10]:
            (batch,) = next(stream).micro_batches
            assert shape_of(batch.source, batch.target) == expected
            kept = [
                each for side in (batch.source, batch.target) for each in (side.tokens, side.positions, side.offsets)
            ]
            assert counted.input_bytes(expected) == sum(each.nbytes for each in kept)


def test_graphs_take_the_place_of_the_launches_of_both_passes() -> None:
    assert counted.launches(1, 1) == 567
    assert counted.launches(1, 1, graphs=True) == 9 + 1 + 35
    assert counted.launches(2, 1) - counted.launches(1, 1) == 124 + 56 + 352
    assert counted.launches(1, 8) - counted.launches(1, 1) == 2


def test_frequent_sizes_cover_at_least_as_many_steps_as_the_recorded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MAX_SHAPES", 3)
    config = compose(["training.batch_tokens=3000", "describe.device=h100"])
    each = counted.count(config, 8, synthetic_pairs(37_000, 37_000, pairs=20_000))
    assert each.shapes > 3
    assert 0 < each.share_replayed < each.share_of_recorded <= each.share_of_frequent < 1
