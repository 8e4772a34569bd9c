"""The number of parameters of a model, and the operations of a training step."""

from dataclasses import replace
from typing import NamedTuple

import torch

from nmt.config.model import ModelConfig
from nmt.config.tree import Config
from nmt.model.build import build_model

MUON_FLOPS = 19
"""About what each of the layers' parameters takes in a step of Muon, divided by the width of the model: 24 in a square
matrix, 16 in a long one."""


class ParameterCounts(NamedTuple):
    """Parameters by the part of the model that they belong to."""

    embedding: int
    """Word vectors (shared ones count once), the projection with its bias, and learned positions."""
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self)


def count_parameters(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> ParameterCounts:
    """Return the parameters of a model for vocabularies of these sizes.

    One layer of each stack is built, without memory, and counts as often as the settings say.
    """
    depths = {"encoder": config.encoder_depth, "decoder": config.decoder_depth}
    counts = {"embedding": 0, "encoder": 0, "decoder": 0}
    with torch.device("meta"):
        model = build_model(
            replace(config, layers=1, encoder_layers=0, decoder_layers=0), source_vocabulary, target_vocabulary
        )
    for name, parameter in model.named_parameters():
        part, _, rest = name.partition(".")
        part = part.removesuffix("_norm")
        part = part if part in depths else "embedding"
        counts[part] += parameter.numel() * (depths.get(part, 1) if rest.startswith("0.") else 1)
    return ParameterCounts(**counts)


def step_flops(config: Config, size: ParameterCounts, target_words: int) -> int:
    """Return the floating-point operations of a training step on a full global batch, with Muon's, if it is used."""
    tokens, width = config.training.batch_tokens, config.model.d_model
    muon = MUON_FLOPS * width * (size.encoder + size.decoder) if config.training.optimizer == "muon" else 0
    return training_flops(size, target_words * width, tokens, tokens) + muon


def training_flops(size: ParameterCounts, projection: int, source_tokens: int, target_tokens: int) -> int:
    """Return the floating-point operations of a step: 6 per token and parameter that the token passes.

    The projection before the softmax has `projection` parameters. The products within attention are not counted.
    """
    read = target_tokens if size.encoder else source_tokens + target_tokens  # a decoder alone reads the source, too
    return 6 * (size.encoder * source_tokens + size.decoder * read + projection * target_tokens)
