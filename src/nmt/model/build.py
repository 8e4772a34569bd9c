"""Build models; no other code constructs them."""

from torch import nn

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.model.interface import TranslationModel
from nmt.model.positions import positions_of

SMALL_STANDARD_DEVIATION = 0.02
"""The standard deviation of the initial weights with `model.initialization=small`."""


def build_model(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> TranslationModel:
    """Build a model with initial weights, given its settings and the sizes of the vocabularies."""
    architecture: type[TranslationModel] = load("model.architecture", config.architecture)
    model = architecture(config, source_vocabulary, target_vocabulary)
    if config.initialization == "small":  # sub-layers add little to the residual stream at first
        for parameter in model.parameters():  # without values, PyTorch would import its compiler
            if parameter.dim() > 1 and not parameter.is_meta:
                nn.init.normal_(parameter, std=SMALL_STANDARD_DEVIATION)
    return model


def needs_padded_attention(config: ModelConfig) -> bool:
    """Return whether attention is more than full or causal: then it is computed on padded blocks."""
    return positions_of(config).biases_scores or config.attention_dropout > 0
