"""Build models; no other code constructs them."""

from collections.abc import Callable

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.model.interface import TranslationModel
from nmt.model.positions import positions_of


def build_model(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> TranslationModel:
    """Build a model with initial weights, given its settings and the sizes of the vocabularies."""
    build: Callable[[ModelConfig, int, int], TranslationModel] = architecture_of(config)
    return build(config, source_vocabulary, target_vocabulary)


def architecture_of(config: ModelConfig) -> type[TranslationModel]:
    """Return the architecture that the settings choose."""
    architecture: type[TranslationModel] = load("model.architecture", config.architecture)
    return architecture


def needs_padded_attention(config: ModelConfig) -> bool:
    """Return whether attention is more than full or causal: then it is computed on padded blocks."""
    return positions_of(config).biases_scores or config.attention_dropout > 0
