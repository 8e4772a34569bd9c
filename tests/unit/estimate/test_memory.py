"""What the formulas say is kept for backward, against what models really save."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.data.loader import MicroBatch
from nmt.estimate.memory import Storage, state_numbers, training_memory
from nmt.estimate.parameters import ParameterCounts, count_parameters
from nmt.model.backends.chosen import choose
from nmt.model.backends.eager import LOGITS_PER_CHUNK, LOGITS_PER_GPU_CHUNK
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import training_with

WORDS, LENGTH, SENTENCES = 60, 12, 20
BASE = ModelConfig(layers=2, d_model=64, d_ff=96, heads=4)
CONFIGS = [
    BASE,
    replace(BASE, layers=3),
    replace(BASE, dropout=0.0),
    replace(BASE, d_k=16, d_v=32),
    replace(BASE, heads=8, d_k=16, d_v=16, kv_heads=2),
    replace(BASE, activation="gelu", norm_placement="pre"),
    replace(BASE, activation="swiglu", norm="rms", norm_placement="pre", positions="rotary"),
    replace(BASE, encoder_layers=1, decoder_layers=3),
    replace(BASE, positions="alibi"),
    replace(BASE, positions="relative"),
    replace(BASE, architecture="decoder_only"),
]


def saved(config: ModelConfig, half: bool) -> int:
    """Bytes of the distinct tensors that a forward pass saves, but for parameters and their copies."""
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
@pytest.mark.parametrize("config", CONFIGS)
def test_the_formula_is_near_what_is_saved(config: ModelConfig, half: bool) -> None:
    if choose(Machine(torch.device("cpu"), torch.bfloat16), kernels=True).name != "cpu":
        pytest.skip("needs a C compiler")
    tokens, size = LENGTH * SENTENCES - SENTENCES // 2, count_parameters(config, WORDS, WORDS).total
    on = Storage(gpu=False, half=half, least=True)
    estimated, without_tokens = (
        training_memory(config, size, WORDS, (count, count), LENGTH, on, 0).activations for count in (tokens, 0)
    )
    widest = tokens * (2 if config.architecture == "decoder_only" else 1)
    temporary = widest * on.width * (2 * config.d_ff + 3 * config.d_model) + on.logits(tokens * WORDS)
    sublayers = 2 * config.encoder_depth + 3 * config.decoder_depth
    if config.architecture == "decoder_only":
        sublayers = 2 * 2 * config.decoder_depth
    # the operations in C keep random numbers of 16 bits, which autograd does not see
    masks = 2 * tokens * config.d_model * (sublayers + 2) if config.dropout else 0
    expected = saved(config, half) + masks
    assert estimated - without_tokens - temporary == pytest.approx(expected, rel=0.15)


def test_devices_divide_the_memory_of_a_sharded_optimizer() -> None:
    size, training = ParameterCounts(400, 300, 300), TrainingConfig()
    assert [state_numbers(training, size, shards) for shards in (1, 8)] == [2000, 250]
    assert state_numbers(replace(training, ema=0.9), size, 8) == 1250


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_the_formula_counts_the_optimizers_state(ema: float) -> None:
    training, machine = training_with(ema=ema), Machine(torch.device("cpu"), torch.float32)
    trainer = Trainer(build_model(BASE, WORDS, WORDS), training, machine, seed=1, parallel=1)
    assert trainer.state_bytes == 4 * state_numbers(training, count_parameters(BASE, WORDS, WORDS))


def test_weights_are_counted_four_times_and_their_copies() -> None:
    memory = training_memory(BASE, 1000, WORDS, (0, 0), 1, Storage(gpu=False, half=False), 2000)
    assert (memory.parameters, memory.gradients, memory.optimizer) == (4000, 4000, 8000)
    assert training_memory(BASE, 1000, WORDS, (0, 0), 1, Storage(gpu=True, half=True), 2000).parameters == 6000


def test_the_loss_holds_as_many_scores_as_it_computes_at_a_time() -> None:
    for gpu, half, width, most in (
        (True, True, 2, LOGITS_PER_GPU_CHUNK),
        (True, False, 4, LOGITS_PER_GPU_CHUNK),
        (False, True, 8, LOGITS_PER_CHUNK),
    ):
        assert Storage(gpu, half).logits(1000) == 1000 * width
        assert Storage(gpu, half).logits(1 << 40) == most * width


def test_flash_attention_keeps_no_weights() -> None:
    short, long = (
        training_memory(BASE, 1000, WORDS, (500, 500), length, Storage(gpu=True, half=True), 0).total
        for length in (5, 200)
    )
    assert short == long


def test_a_gpu_saves_no_dropout_masks_of_residual_connections() -> None:
    with_dropout, without = (
        training_memory(config, 1000, WORDS, (500, 500), 9, Storage(gpu=True, half=True), 0).activations
        for config in (BASE, replace(BASE, dropout=0.0))
    )
    assert with_dropout - without == pytest.approx(1.05 * 2 * 500 * BASE.d_model, abs=1)
