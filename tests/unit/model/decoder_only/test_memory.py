"""The estimated memory of a decoder-only model."""

from nmt.commands.describe import TYPICAL_LENGTH, describe
from nmt.config.compose import compose


def test_prefix_attention_keeps_the_attention_weights_on_a_gpu() -> None:
    words = ["data.corpus=none", "model.architecture=decoder_only", "describe.device=h100"]
    causal, prefix = (
        describe(compose([*words, f"model.prefix_attention={each}"]), 1).memory.activations
        for each in ("false", "true")
    )
    layers, tokens, heads, keys = 6, 2 * 25_000, 8, 2 * TYPICAL_LENGTH
    assert prefix - causal > 1.05 * layers * tokens * heads * 4 * keys
