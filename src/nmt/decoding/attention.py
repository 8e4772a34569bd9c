"""The attention weights of a sentence and its translation."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from nmt.config.model import ModelConfig
from nmt.decoding.limits import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer

Weights = npt.NDArray[np.float32]
"""(layers, heads, queries, keys)."""
START, END = "⟨s⟩", "⟨/s⟩"
KINDS = ("encoder", "decoder", "cross")
COPIES, FLOAT_BYTES = 2, 4
"""The weights are kept by layer, and then copied into one tensor."""


@dataclass(frozen=True, slots=True)
class Attention:
    """All attention weights of a sentence and its translation."""

    source: list[str]
    """Word pieces that the encoder reads."""
    target: list[str]
    """Word pieces that the decoder reads, from the start mark on."""
    encoder: Weights
    decoder: Weights
    cross: Weights

    def of_kind(self, kind: str) -> tuple[Weights, list[str], list[str]]:
        """Return the weights of one of KINDS with the pieces of its queries and of its keys."""
        kinds = {
            "encoder": (self.encoder, self.source, self.source),
            "decoder": (self.decoder, self.target, self.target),
            "cross": (self.cross, self.target, self.source),
        }
        return kinds[kind]

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.encoder.size + self.decoder.size + self.cross.size


def attention_bytes(config: ModelConfig, source: int, target: int) -> int:
    """Return the bytes of all attention weights of sentences of these lengths, while they are being put together."""
    encoder = config.encoder_depth * source * source
    decoder = config.decoder_depth * target * (target + source)
    return COPIES * FLOAT_BYTES * config.heads * (encoder + decoder)


def compute_attention(
    model: TranslationModel,
    tokenizer: Tokenizer,
    source: str,
    target: str,
    max_tokens: tuple[int, int] = (MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS),
) -> Attention:
    """Return the attention weights of a sentence and its translation.

    Of a longer sentence, only the beginning counts: `max_tokens` of both sides, with their marks.
    """
    source_ids = tokenizer.encode_input([source])[0][: max_tokens[0] - 1]
    target_ids = tokenizer.encode_target([target])[0][: max_tokens[1] - 1]
    device = model.projection.device
    stream = Packed.from_sentences([[*source_ids, EOS]]).to(device)
    prefix = Packed.from_sentences([[BOS, *target_ids]]).to(device)
    with torch.no_grad():
        (maps,) = model.attention(stream, prefix)
    return Attention(
        [*tokenizer.source_pieces(source_ids), END],
        [START, *tokenizer.target_pieces(target_ids)],
        *(weights.cpu().numpy() for weights in maps),
    )
