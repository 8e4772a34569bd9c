"""Bring the weights of a Marian model under our names: the inverse of an export to that format."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.features.imports.marian_vocabulary import Vocabulary
from nmt.model.positions.sinusoidal import sinusoids

SILENT_BIAS = -100.0
"""The bias of a piece that is never generated: its probability is 0 in float32."""
POSITIONS_TOLERANCE = 1e-2
"""The largest difference of stored positions from sinusoids, which may be stored in half precision."""
MATRICES = {
    "source": ("model.encoder.embed_tokens.weight", "model.shared.weight"),
    "target": ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    "projection": ("lm_head.weight", "model.decoder.embed_tokens.weight", "model.shared.weight"),
}
"""The names under which the matrix of each use may be stored, the first one that exists counts."""


class MarianWeights:
    """The weights of a Marian model; each is taken once, and those that are left over are refused by name."""

    def __init__(self, weights: Mapping[str, Tensor], folder: Path) -> None:
        self._weights = {name: weight.float() for name, weight in weights.items()}
        self._left = set(weights)
        self._folder = folder

    @property
    def biased(self) -> bool:
        """Whether the scores of words have a bias."""
        bias = self._weights.get("final_logits_bias")
        return bias is not None and bool(bias.any())

    def tied(self, settings: Mapping[str, Any]) -> bool:
        """Return whether one matrix serves for both embeddings and the projection."""
        if settings.get("share_encoder_decoder_embeddings", True) and settings.get("tie_word_embeddings", True):
            return True
        source, target, projection = (self._matrix(use) for use in MATRICES)
        return torch.equal(source, target) and torch.equal(target, projection)

    def convert(self, model: ModelConfig, source: Vocabulary, target: Vocabulary) -> dict[str, Tensor]:
        """Return the weights under our names.

        Marian's sinusoids have all sines first and then all cosines; ours alternate. So the coordinates of the residual
        stream are reordered wherever a layer reads or writes it.
        """
        found = dict(self._vectors(model, source, target))
        for stack, layers in (("encoder", model.encoder_depth), ("decoder", model.decoder_depth)):
            for index in range(layers):
                for name, weight in self._layer(f"model.{stack}.layers.{index}", model):
                    found[f"{stack}.{index}.{name}"] = weight.contiguous()
        self._check_positions(model)
        if self._left:
            raise UserError(
                f"{self._folder} has weights that this project's model has no place for, such as {min(self._left)}: "
                "import another model"
            )
        return found

    def _take(self, name: str, *shape: int) -> Tensor:
        """Return a weight, which must have this shape."""
        self._left.discard(name)
        if name not in self._weights:
            raise UserError(f"{self._folder} has no weight {name}, which its config.json promises: fetch it again")
        weight = self._weights[name]
        if weight.shape != shape:
            raise UserError(
                f"{self._folder}: {name} is {list(weight.shape)}, but config.json says {list(shape)}: fetch both again"
            )
        return weight

    def _matrix(self, use: str) -> Tensor:
        """Return the matrix of word vectors of one use: source, target or projection."""
        self._left.difference_update(MATRICES[use])
        for name in MATRICES[use]:
            if name in self._weights:
                return self._weights[name]
        raise UserError(f"{self._folder} has no weight {MATRICES[use][0]}: fetch all files of the model")

    def _vectors(self, model: ModelConfig, source: Vocabulary, target: Vocabulary) -> Iterator[tuple[str, Tensor]]:
        rows = {"source": source.rows, "target": target.rows, "projection": target.rows}
        for use in MATRICES:
            matrix = self._matrix(use)
            if matrix.shape != (len(set(rows[use])), model.d_model):
                raise UserError(
                    f"{self._folder}: the {use} vectors are {list(matrix.shape)}, but config.json and the vocabulary "
                    f"say {[len(set(rows[use])), model.d_model]}: fetch all files again"
                )
            order = _ours(model.d_model)  # only now: config.json may claim any size
            if not model.tie_embeddings or use == "source":
                name = "shared" if model.tie_embeddings else use
                yield f"vectors.{name}", matrix[rows[use]][:, order].contiguous()
        words = len(set(target.rows))
        bias = self._take("final_logits_bias", 1, words) if "final_logits_bias" in self._weights else None
        if model.output_bias:
            scores = torch.zeros(words) if bias is None else bias[0]
            yield "vectors.bias", scores[target.rows] + SILENT_BIAS * torch.tensor(target.silent)

    def _layer(self, theirs: str, model: ModelConfig) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights of a layer under our names, without the layer's prefix."""
        width, inner, order = model.d_model, model.d_ff, _ours(model.d_model)

        def reads(ours: str, size: int, *names: str) -> Iterator[tuple[str, Tensor]]:
            """Yield a linear layer that reads the residual stream; Marian may have split it into several layers."""
            weights = [self._take(f"{theirs}.{name}.weight", size, width) for name in names]
            biases = [self._take(f"{theirs}.{name}.bias", size) for name in names]
            yield f"{ours}.weight", torch.cat(weights)[:, order]
            yield f"{ours}.bias", torch.cat(biases)

        def writes(ours: str, name: str, *sizes: int) -> Iterator[tuple[str, Tensor]]:
            """Yield a linear layer, or without `sizes` a normalisation, that writes to the residual stream."""
            yield f"{ours}.weight", self._take(f"{theirs}.{name}.weight", width, *sizes)[order]
            yield f"{ours}.bias", self._take(f"{theirs}.{name}.bias", width)[order]

        yield from reads("attention.query_key_value", width, *(f"self_attn.{part}_proj" for part in "qkv"))
        yield from writes("attention.output", "self_attn.out_proj", width)
        yield from writes("attention_residual.norm", "self_attn_layer_norm")
        if theirs.startswith("model.decoder"):
            yield from reads("cross_attention.query", width, "encoder_attn.q_proj")
            yield from reads("cross_attention.key_value", width, "encoder_attn.k_proj", "encoder_attn.v_proj")
            yield from writes("cross_attention.output", "encoder_attn.out_proj", width)
            yield from writes("cross_attention_residual.norm", "encoder_attn_layer_norm")
        yield from reads("feed_forward.inner", inner, "fc1")
        yield from writes("feed_forward.outer", "fc2", inner)
        yield from writes("feed_forward_residual.norm", "final_layer_norm")

    def _check_positions(self, model: ModelConfig) -> None:
        """Refuse stored positions that are not sinusoids."""
        for stack in ("encoder", "decoder"):
            name = f"model.{stack}.embed_positions.weight"
            self._left.discard(name)
            stored = self._weights.get(name)
            if stored is None:
                continue
            fits = stored.dim() == 2 and stored.shape[1] == model.d_model
            expected = sinusoids(len(stored), model.d_model).float() if fits else stored
            if not fits or not torch.allclose(stored[:, _ours(model.d_model)], expected, 0, POSITIONS_TOLERANCE):
                raise UserError(
                    f"{self._folder}: {name} holds no sinusoids, as Marian's models do: import another model"
                )


def _ours(width: int) -> Tensor:
    """Return Marian's coordinate for each of ours: sines and cosines in turn."""
    return torch.arange(width).view(2, -1).T.flatten()
