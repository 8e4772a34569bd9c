"""What the formulas say is kept for backward, against what modules really save."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.config.training import TrainingConfig
from nmt.data.loader import MicroBatch
from nmt.estimate.memory import (
    activation_storage,
    state_numbers,
    training_memory,
)
from nmt.estimate.parameters import ParameterCounts, count_parameters
from nmt.model.backends.eager import LOGITS_PER_CHUNK, LOGITS_PER_GPU_CHUNK
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import training_with

WORDS, LENGTH, SENTENCES = 60, 12, 20
BASE = ModelConfig(layers=2, d_model=48, d_ff=96, heads=4)


def saved(config: ModelConfig, half: bool) -> int:
    """Bytes of the distinct tensors that a forward pass saves, but for parameters and their copies."""
    torch.manual_seed(1)
    model = build_model(config, WORDS, WORDS)
    lines = [[5] * (LENGTH - index % 2) for index in range(SENTENCES)]
    stream = Packed.from_sentences(lines)
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


@pytest.mark.parametrize("half", [False])
@pytest.mark.parametrize(
    "config",
    [
        BASE,
        replace(BASE, layers=3),
        replace(BASE, dropout=0.0),
        replace(BASE, d_k=8, d_v=20),
        replace(BASE, heads=12),
        replace(BASE, activation="gelu", norm_placement="pre"),
        replace(BASE, activation="swiglu"),
        replace(BASE, encoder_layers=1, decoder_layers=3),
        replace(BASE, encoder_layers=4),
        *(
            replace(BASE, positions=name)
            for name in CHOICES["model.positions"]
            if load("model.positions", name).biases_scores
        ),
    ],
)
def test_the_formula_is_near_what_is_saved(config: ModelConfig, half: bool) -> None:
    tokens, size = LENGTH * SENTENCES - SENTENCES // 2, count_parameters(config, WORDS, WORDS).total
    on = activation_storage(gpu=False, half=half)._replace(slack=1.0, scores=0)
    estimated, without_tokens = (
        training_memory(config, size, WORDS, count, count, LENGTH, on).activations for count in (tokens, 0)
    )
    temporary = tokens * (2 * on.width * config.d_ff + 3 * 4 * config.d_model)
    assert estimated - without_tokens - temporary == pytest.approx(saved(config, half), rel=0.12)


def test_devices_divide_the_memory_of_a_sharded_optimizer() -> None:
    on, size, training = activation_storage(gpu=True, half=True), ParameterCounts(400, 300, 300), TrainingConfig()
    whole = training_memory(BASE, 1000, WORDS, 10, 10, 5, on)
    for shards in (1, 8):
        state = state_numbers(training, size, shards)
        sharded = training_memory(BASE, 1000, WORDS, 10, 10, 5, on, state=state)
        assert sharded == whole._replace(optimizer=whole.optimizer // shards)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_the_formula_counts_the_optimizers_state(ema: float) -> None:
    training, machine = training_with(ema=ema), Machine(torch.device("cpu"), torch.float32)
    model = build_model(BASE, WORDS, WORDS)
    trainer = Trainer(model, training, machine, seed=1, parallel=1)
    assert trainer.state_bytes == 4 * state_numbers(training, count_parameters(BASE, WORDS, WORDS))


def test_weights_are_counted_four_times_and_their_copies() -> None:
    memory = training_memory(BASE, 1000, WORDS, 0, 0, 1, activation_storage(gpu=False, half=False))
    assert (memory.parameters, memory.gradients, memory.optimizer) == (4000, 4000, 8000)
    assert training_memory(BASE, 1000, WORDS, 0, 0, 1, activation_storage(gpu=True, half=True)).parameters == 6000


def test_the_loss_holds_as_many_scores_as_it_computes_at_a_time() -> None:
    few, many = 6_250, 50_000
    for gpu, half, width, most in (
        (True, True, 2, LOGITS_PER_GPU_CHUNK),
        (True, False, 4, LOGITS_PER_GPU_CHUNK),
        (False, True, 8, LOGITS_PER_CHUNK),
    ):
        on = activation_storage(gpu=gpu, half=half)._replace(slack=1.0)
        for tokens in (few, many):
            held, nothing = (
                training_memory(BASE, 1000, 37_000, 0, tokens, 1, each).activations
                for each in (on, on._replace(scores=0))
            )
            assert held - nothing == width * min(37_000 * tokens, most)


def test_flash_attention_keeps_no_weights() -> None:
    short, long = (
        training_memory(BASE, 1000, WORDS, 500, 500, length, activation_storage(gpu=True, half=True)).total
        for length in (5, 200)
    )
    assert short == long


def test_a_gpu_saves_no_dropout_masks_of_residual_connections() -> None:
    with_dropout, without = (
        training_memory(config, 1000, WORDS, 500, 500, 9, activation_storage(gpu=True, half=True)).activations
        for config in (BASE, replace(BASE, dropout=0.0))
    )
    embeddings = 2 * 500 * BASE.d_model
    assert with_dropout - without == pytest.approx(1.05 * embeddings, abs=1)
