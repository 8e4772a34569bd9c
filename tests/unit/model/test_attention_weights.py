"""The recorded attention weights."""

import torch

from nmt.config.model import ModelConfig
from nmt.model.attention import Recorder
from nmt.model.build import build_model
from nmt.model.layers import SelfAttention
from nmt.model.packed import Packed
from nmt.model.positions import Places
from nmt.model.transformer import Transformer


def test_recorded_attention_weights_are_those_that_the_model_uses() -> None:
    config = ModelConfig(layers=2, d_model=16, d_ff=16, heads=4, kv_heads=2, dropout=0.0)
    model = build_model(config, 50, 50).eval()
    assert isinstance(model, Transformer)
    source, target = Packed.from_sentences([[5, 6, 7, 3]]), Packed.from_sentences([[2, 8, 9]])
    encoder, decoder = Recorder(), Recorder()
    with torch.no_grad():
        memory = model.encode(source, encoder)
        assert torch.allclose(model.decode(source, memory, target, decoder), model(source, target), atol=1e-6)
        stream = model.embed("source", source.tokens, Places(source.positions, source.longest))
        attention = model.get_submodule("encoder.0.attention")
        assert isinstance(attention, SelfAttention)
        queries, keys, _ = attention.project(stream, None)
    assert [tuple(each.shape) for each in encoder.weights] == [(1, 4, 4, 4)] * 2
    assert [tuple(each.shape) for each in decoder.weights] == [(1, 4, 3, 3), (1, 4, 3, 4)] * 2
    for head in range(4):
        for query in range(4):
            products = torch.stack([queries[query, head] @ keys[key, head // 2] for key in range(4)]) / 2
            expected = products.exp() / products.exp().sum()
            assert torch.allclose(encoder.weights[0][0, head, query], expected, atol=1e-5)
    assert decoder.weights[0].triu(1).count_nonzero() == 0
