"""The estimate of Muon's memory."""

import torch

from nmt.commands.describe import describe
from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.estimate.memory import state_numbers
from nmt.estimate.parameters import count_parameters
from nmt.model.build import build_model
from nmt.training.trainer import Trainer
from tests.unit.estimate.test_estimate import BASE, WORDS
from tests.unit.training.test_trainer import training_with


def test_the_formula_of_the_state_counts_all_but_the_vectors_of_layers() -> None:
    training, machine = training_with(optimizer="muon"), Machine(torch.device("cpu"), torch.float32)
    model = build_model(BASE, WORDS, WORDS)
    trainer = Trainer(model, training, machine, seed=1, parallel=1)
    expected = state_numbers(training, count_parameters(BASE, WORDS, WORDS))
    vectors = sum(parameter.numel() for parameter in trainer.model.parameters() if parameter.dim() == 1)  # have Adam
    assert trainer.state_bytes == 4 * (expected + vectors)


def test_a_step_needs_less_memory_than_with_adam() -> None:
    adam, muon = (
        describe(compose(["describe.device=h100", f"training.optimizer={name}"]), 1) for name in ("adam", "muon")
    )
    layers = adam.parameters.encoder + adam.parameters.decoder
    assert muon.memory == adam.memory._replace(optimizer=adam.memory.optimizer - 4 * layers)
