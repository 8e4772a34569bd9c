"""A prepared model against the one that it was made of."""

import pytest
import torch

from nmt.config.model import ModelConfig
from nmt.model.build import build_model
from nmt.model.cpu.prepared_layers import PreparedLinear
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.packed import Packed


@pytest.mark.parametrize("rows", [1, 5, 160, 7])
@pytest.mark.parametrize("bias", [True, False])
def test_a_prepared_linear_layer_gives_the_same_result(rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    linear = torch.nn.Linear(48, 200, bias=bias)
    stream = torch.randn(rows, 48)
    expected = stream.double() @ linear.weight.double().t() + (linear.bias.double() if bias else 0)
    torch.testing.assert_close(PreparedLinear(linear.weight, linear.bias)(stream).double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("tie", [True, False])
def test_a_prepared_model_gives_the_same_result_and_ignores_later_changes(tie: bool) -> None:
    torch.manual_seed(1)
    model = build_model(ModelConfig(layers=2, d_model=16, d_ff=32, heads=2, tie_embeddings=tie), 40, 40).train()
    twin = prepare_for_cpu(model, torch.float32)
    source, target = Packed.from_sentences([[5, 6, 7], [8]]), Packed.from_sentences([[2, 9], [2, 9, 10]])
    with torch.no_grad():
        expected = model.eval().logits(model(source, target))
        model.train()
        for parameter in model.parameters():
            parameter.zero_()
        found = twin.logits(twin(source, target))
    torch.testing.assert_close(found, expected)
    assert expected.abs().max() > 0.1
    assert model.training
    assert any(isinstance(module, PreparedLinear) for module in twin.modules())
    assert prepare_for_cpu(twin, torch.float32) is twin
