"""What the model does on a GPU, on CPU tensors that say they are on one: operations have an implementation for both."""

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.model.build import build_model
from nmt.model.cpu import dropout
from nmt.model.cpu.dropout import Dropout, share_seed
from nmt.model.interface import TranslationModel
from nmt.model.kernels import backend
from nmt.model.packed import Packed

CONFIG = ModelConfig(layers=2, d_model=32, d_ff=64, heads=2, dropout=0.0)
SOURCE, TARGET = Packed.from_sentences([[5, 6, 7], [8, 9]]), Packed.from_sentences([[2, 4], [2, 5, 9, 7]])


@pytest.fixture
def gpu() -> Iterator[None]:
    with (
        patch.object(torch.Tensor, "is_cuda", True),
        patch.object(backend, "has_triton", return_value=False),
        patch.object(dropout, "has_fused_residual", return_value=True),
    ):
        yield


def model_of(config: ModelConfig) -> TranslationModel:
    torch.manual_seed(1)
    return build_model(config, 20, 20)


def output_and_gradients(model: TranslationModel) -> list[Tensor]:
    output = model(SOURCE, TARGET)
    weighting = torch.linspace(-1, 1, output.numel()).view(output.shape)
    return [output.detach(), *torch.autograd.grad((output * weighting).sum(), list(model.parameters()))]


@pytest.mark.parametrize(
    "config", [CONFIG, replace(CONFIG, norm="rms"), replace(CONFIG, norm_placement="pre")], ids=["paper", "rms", "pre"]
)
def test_without_dropout_a_gpu_computes_the_same(config: ModelConfig, request: pytest.FixtureRequest) -> None:
    model = model_of(config)
    expected = output_and_gradients(model)
    request.getfixturevalue("gpu")
    torch.testing.assert_close(output_and_gradients(model), expected)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_dropout_on_a_gpu_depends_on_the_seed_only(placement: str, gpu: None) -> None:
    model = model_of(replace(CONFIG, dropout=0.4, norm_placement=placement))
    seed = share_seed(model.modules(), torch.device("cpu"))
    outputs = []
    for value in (1, 2, 1):
        torch.manual_seed(5)  # of the embeddings' dropout
        seed.fill_(value)
        outputs.append(model(SOURCE, TARGET).detach())
    assert torch.equal(outputs[0], outputs[2])
    assert not torch.equal(outputs[0], outputs[1])
    model.eval()
    assert torch.equal(model(SOURCE, TARGET), model(SOURCE, TARGET))


def test_each_dropout_of_a_model_has_its_own_masks() -> None:
    model = model_of(replace(CONFIG, dropout=0.4))
    seed = share_seed(model.modules(), torch.device("cpu"))
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    assert len({dropout.site for dropout in dropouts}) == len(dropouts) == 1 + 2 * 2 + 2 * 3
    assert all(dropout.seed is seed for dropout in dropouts)
    assert not [name for name in model.state_dict() if "seed" in name]  # checkpoints do not store it
