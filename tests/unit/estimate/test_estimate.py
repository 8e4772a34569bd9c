"""Parameters, operations, memory and time, against models that are built, devices' data sheets, and the paper."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.config.tree import Config
from nmt.data.loader import MicroBatch
from nmt.errors import ConfigError
from nmt.estimate.hardware import DEVICES, hours, precision_on
from nmt.estimate.memory import Storage, state_numbers, training_memory
from nmt.estimate.parameters import count_parameters, step_flops, training_flops
from nmt.model.backends.chosen import choose
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from nmt.training.optimizer import state_tensors
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import training_with

SMALL = ModelConfig(layers=2, d_model=16, d_ff=24, heads=4, max_positions=10)
WORDS, LENGTH, SENTENCES = 60, 12, 20
BASE = ModelConfig(layers=2, d_model=64, d_ff=96, heads=4)
ON_GPU = Storage(gpu=True, half=True)


@pytest.mark.parametrize(
    "config",
    [
        replace(SMALL, layers=3, d_k=6, d_v=10),
        replace(SMALL, kv_heads=2),
        replace(SMALL, encoder_layers=3, decoder_layers=1, norm_placement="pre"),
        *(replace(SMALL, positions=name, d_k=6) for name in CHOICES["model.positions"]),
        replace(SMALL, norm="rms", norm_placement="pre", activation="swiglu"),
        replace(SMALL, tie_embeddings=False),
    ],
)
def test_parameters_equal_those_of_a_model_that_is_built(config: ModelConfig) -> None:
    source, target = (50, 50) if config.tie_embeddings else (50, 40)
    counts = dict.fromkeys(("embedding", "encoder", "decoder"), 0)
    for name, parameter in build_model(config, source, target).named_parameters():
        part = next((part for part in ("encoder", "decoder") if name.startswith(part)), "embedding")
        counts[part] += parameter.numel()
    assert count_parameters(config, source, target)._asdict() == counts


def millions(row: str, vocabulary: int) -> float:
    return count_parameters(compose([f"experiment=table3/{row}"]).model, vocabulary, vocabulary).total / 1e6


@pytest.mark.parametrize(
    ("row", "paper"),
    [
        *(("base", 65), ("b1", 58), ("b2", 60), ("c1", 36), ("c2", 50), ("c3", 80), ("c4", 28), ("c5", 168)),
        *(("c6", 53), ("c7", 90)),
    ],
)
def test_parameters_of_table_3_within_two_million_at_a_vocabulary_near_41000(row: str, paper: int) -> None:
    assert millions(row, 41_000) == pytest.approx(paper, abs=2)


def test_parameters_and_operations_of_the_papers_models() -> None:
    size = count_parameters(ModelConfig(), 37_000, 37_000)
    assert size.total == 63_082_496
    assert millions("big", 37_000) == pytest.approx(214, abs=0.5)
    assert {millions(row, 37_000) for row in ("base", "a1", "a4", "d1", "d4")} == {size.total / 1e6}
    assert millions("e", 37_000) - size.total / 1e6 == pytest.approx(2 * 1024 * 512 / 1e6)  # two tables
    assert training_flops(size, 37_000 * 512, 25_000, 25_000) == pytest.approx(9.5e12, rel=0.01)
    assert training_flops(size, 37_000 * 512, 10, 0) == 60 * size.encoder
    assert step_flops(Config(), size, 37_000) == training_flops(size, 37_000 * 512, 25_000, 25_000)


@pytest.mark.parametrize(
    ("peak", "devices", "flops", "expected"),
    [
        (DEVICES["p100"].fp32, 8, 9.5e17, 12),
        (DEVICES["p100"].fp32, 8, 9.7e18, 84),
        (DEVICES["h200"].half, 1, 9.5e17, 1e5 * 0.028 / 3600),
        (DEVICES["h200"].half, 1, 9.7e18, 3e5 * 0.07163 / 3600),
    ],
)
def test_times_are_near_the_papers_and_those_of_measured_steps(
    peak: float, devices: int, flops: float, expected: float
) -> None:
    assert hours(flops, peak, devices) == pytest.approx(expected, rel=0.3)


def test_a_device_without_bf16_is_estimated_in_fp16() -> None:
    """Against one fused multiply-add per core and clock in fp32, and eight in fp16, on the tensor cores."""
    assert precision_on("v100", "auto") == precision_on("V100", "fp16") == "fp16"
    for peak, products in ((DEVICES["v100"].fp32, 1), (DEVICES["v100"].half, 8)):
        assert peak == pytest.approx(2 * products * 5120 * 1.53e9, rel=0.02)
    with pytest.raises(ConfigError, match=r"describe.device=v100 has no bf16: leave runtime.precision out"):
        precision_on("v100", "bf16")
    with pytest.raises(ConfigError, match=r"describe.device=H10 is not a device known here; did you mean h100\?"):
        precision_on("H10", "auto")


def saved(config: ModelConfig, half: bool) -> int:
    """Return the bytes of the distinct tensors that a forward pass saves, but for parameters and their copies."""
    torch.manual_seed(1)
    model = build_model(config, WORDS, WORDS)
    stream = Packed.from_sentences([[5] * (LENGTH - index % 2) for index in range(SENTENCES)])
    known = {parameter.data_ptr() for parameter in model.parameters()}
    shapes = {tuple(parameter.shape) for parameter in model.parameters()}
    shapes |= {shape[::-1] for shape in shapes}
    kept: dict[int, Tensor] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in known and tuple(tensor.shape) not in shapes:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        WorkingWeights(model, torch.bfloat16 if half else torch.float32).active(),
    ):
        Objective(model, 0.1)(MicroBatch(stream, stream, stream.tokens, np.arange(SENTENCES)))
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize(
    "config",
    [
        BASE,
        replace(BASE, dropout=0.0, heads=8, d_k=16, d_v=32, kv_heads=2),
        replace(BASE, activation="gelu", norm_placement="pre", encoder_layers=1, decoder_layers=3),
        replace(BASE, activation="swiglu", norm="rms", norm_placement="pre", positions="rotary"),
        replace(BASE, positions="alibi"),
        replace(BASE, positions="relative"),
        replace(BASE, architecture="decoder_only"),
    ],
)
def test_the_formula_is_near_what_is_saved(config: ModelConfig, half: bool) -> None:
    if choose(Machine(torch.device("cpu"), torch.bfloat16), kernels=True).name != "cpu":
        pytest.skip("needs a C compiler")
    tokens, size = LENGTH * SENTENCES - SENTENCES // 2, count_parameters(config, WORDS, WORDS).total
    on = Storage(gpu=False, half=half, least=True)
    estimated, without_tokens = (
        training_memory(config, size, WORDS, (count, count), LENGTH, on, 0).activations for count in (tokens, 0)
    )
    widest = tokens * (2 if config.architecture == "decoder_only" else 1)
    temporary = widest * on.width * (2 * config.d_ff + 3 * config.d_model) + 8 * tokens * WORDS
    sublayers = 2 * config.encoder_depth + 3 * config.decoder_depth
    if config.architecture == "decoder_only":
        sublayers = 2 * 2 * config.decoder_depth
    # the operations in C keep random numbers of 16 bits, which autograd does not see
    masks = 2 * tokens * config.d_model * (sublayers + 2) if config.dropout else 0
    assert estimated - without_tokens - temporary == pytest.approx(saved(config, half) + masks, rel=0.15)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_formula_counts_the_optimizers_state(optimizer: str) -> None:
    training, machine = training_with(optimizer=optimizer), Machine(torch.device("cpu"), torch.float32)
    trainer = Trainer(build_model(BASE, WORDS, WORDS), training, machine, seed=1, parallel=1)
    numbers = sum(each.numel() for each in state_tensors(trainer.optimizer))
    estimated = state_numbers(training, count_parameters(BASE, WORDS, WORDS))
    rounding = 0.03 if optimizer == "muon" else 0  # as if Muon updated the biases, too
    assert estimated == pytest.approx(numbers, rel=rounding)


def test_flash_attention_keeps_no_weights_and_a_gpu_no_masks_of_residual_connections() -> None:
    def activations(config: ModelConfig, length: int) -> int:
        return training_memory(config, 1000, WORDS, (500, 500), length, ON_GPU, 0).activations

    assert activations(BASE, 5) == activations(BASE, 200)
    masks_of_words = activations(BASE, 9) - activations(replace(BASE, dropout=0.0), 9)
    assert masks_of_words == pytest.approx(1.05 * 2 * 500 * BASE.d_model, abs=1)
