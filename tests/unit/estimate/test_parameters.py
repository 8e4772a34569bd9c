"""The formulas against models that are built, and against the paper's Table 3."""

from dataclasses import replace

import pytest

from nmt.config.compose import compose
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.config.tree import Config
from nmt.estimate.parameters import count_parameters, step_flops, training_flops
from nmt.model.build import build_model

SMALL = ModelConfig(layers=2, d_model=16, d_ff=24, heads=4, max_positions=10)


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        replace(SMALL, layers=3, heads=1),
        replace(SMALL, d_k=6, d_v=10),
        replace(SMALL, kv_heads=2),
        replace(SMALL, encoder_layers=3, decoder_layers=1, norm_placement="pre"),
        *(replace(SMALL, positions=name, d_k=6) for name in CHOICES["model.positions"]),
        replace(SMALL, norm="rms", norm_placement="pre", activation="swiglu"),
        replace(SMALL, norm_placement="pre", activation="gelu"),
        replace(SMALL, tie_embeddings=False),
    ],
)
def test_formulas_equal_a_model_that_is_built(config: ModelConfig) -> None:
    source, target = (50, 50) if config.tie_embeddings else (50, 40)
    built = build_model(config, source, target)
    counts = dict.fromkeys(("embedding", "encoder", "decoder"), 0)
    for name, parameter in built.named_parameters():
        part = next((part for part in ("encoder", "decoder") if name.startswith(part)), "embedding")
        counts[part] += parameter.numel()
    assert count_parameters(config, source, target)._asdict() == counts


def millions(row: str, vocabulary: int) -> float:
    return count_parameters(compose([f"experiment=table3/{row}"]).model, vocabulary, vocabulary).total / 1e6


def test_base_and_big_with_the_papers_vocabulary() -> None:
    assert count_parameters(ModelConfig(), 37_000, 37_000).total == 63_082_496
    assert millions("big", 37_000) == pytest.approx(214, abs=0.5)


@pytest.mark.parametrize(
    ("row", "paper"),
    [
        ("base", 65),
        ("b1", 58),
        ("b2", 60),
        ("c1", 36),
        ("c2", 50),
        ("c3", 80),
        ("c4", 28),
        ("c5", 168),
        ("c6", 53),
        ("c7", 90),
    ],
)
def test_table_3_within_two_million_at_a_vocabulary_near_41000(row: str, paper: int) -> None:
    assert millions(row, 41_000) == pytest.approx(paper, abs=2)


@pytest.mark.parametrize("row", ["a1", "a2", "a3", "a4", "d1", "d2", "d3", "d4"])
def test_rows_that_change_no_size(row: str) -> None:
    assert millions(row, 37_000) == millions("base", 37_000)


def test_learned_positions_add_two_tables() -> None:
    assert millions("e", 37_000) - millions("base", 37_000) == pytest.approx(2 * 1024 * 512 / 1e6)


def test_flops_of_the_papers_base_step() -> None:
    size = count_parameters(ModelConfig(), 37_000, 37_000)
    assert (size.encoder / 1e6, size.decoder / 1e6) == pytest.approx((18.9, 25.2), abs=0.05)
    assert training_flops(size, 37_000 * 512, 25_000, 25_000) == pytest.approx(9.5e12, rel=0.01)
    assert training_flops(size, 37_000 * 512, 10, 0) == 60 * size.encoder
    assert step_flops(Config(), size, 37_000) == training_flops(size, 37_000 * 512, 25_000, 25_000)
