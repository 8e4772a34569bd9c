"""The weights of a model under Marian's names and in its layout, and back."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.config.schema import ModelConfig
from nmt.text.special import BOS, PAD

OUTPUT_BIAS = "decoder_ff_logit_out_b"
"""Marian's name of the numbers that are added to the scores of words."""
NEVER = -1e4
"""The bias of pieces that are never generated; Marian's search has no list of them."""
ROW_MULTIPLE = 8
"""Marian's int8 products need a multiple of this number of words."""


class Part(NamedTuple):
    """An array of Marian, and the part of our parameter that it is."""

    theirs: str
    ours: str
    by_row: bool
    """Whether its rows belong to the coordinates of the residual stream; if not, the columns of a matrix do."""
    part: int = 0
    parts: int = 1

    @property
    def is_matrix(self) -> bool:
        """Whether it is a matrix, which Marian transposes, and not a vector, which it stores as one row."""
        return self.theirs[-2] == "W"


def to_marian(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return NumPy arrays by Marian's names: matrices transposed, vectors as rows.

    Marian's sinusoids have all sines first and then all cosines; ours alternate. So the coordinates of the residual
    stream are reordered wherever a layer reads or writes it. Words that no vocabulary has fill the last multiple.
    """
    order = _order(config)
    found = {}
    for theirs, ours in _vectors(config).items():
        rows = _filled(weights[ours].float()[:, order], 0.0)
        found[theirs] = rows.T if _is_projection(ours) else rows
    words = len(weights["vectors.shared" if config.tie_embeddings else "vectors.projection"])
    bias = weights["vectors.bias"].float().clone() if config.output_bias else torch.zeros(words)
    bias[[PAD, BOS]] = NEVER
    found[OUTPUT_BIAS] = _filled(bias, NEVER)[None]
    for each in _parts(config):
        weight = _reordered(weights[each.ours].float().chunk(each.parts)[each.part], order, each)
        found[each.theirs] = weight.T if each.is_matrix else weight[None]
    return {name: array.contiguous().numpy() for name, array in found.items()}


def from_marian(config: ModelConfig, arrays: Mapping[str, Any], words: tuple[int, int]) -> dict[str, Tensor]:
    """Return the weights under our names, the inverse of `to_marian`; `words` are the sizes of both vocabularies.

    Arrays that are missing or have another shape raise a KeyError, IndexError, RuntimeError, TypeError or ValueError.
    """
    width = arrays[next(iter(_vectors(config)))].shape[-1]
    if width != config.d_model:
        raise ValueError(f"word vectors of {width} numbers")
    order = _order(config).argsort()
    source, target = words
    found: dict[str, list[Tensor]] = {}
    for theirs, ours in _vectors(config).items():
        rows = torch.from_numpy(arrays[theirs])
        rows = rows.T if _is_projection(ours) else rows
        found[ours] = [rows[: source if ours == "vectors.source" else target, order]]
    if config.output_bias:
        found["vectors.bias"] = [torch.from_numpy(arrays[OUTPUT_BIAS])[0, :target]]
    for each in _parts(config):
        array = torch.from_numpy(arrays[each.theirs])
        weight = array.T if each.is_matrix else array[0]
        found.setdefault(each.ours, []).append(_reordered(weight, order, each))
    return {name: torch.cat(parts).contiguous() for name, parts in found.items()}


def _order(config: ModelConfig) -> Tensor:
    return torch.cat([torch.arange(0, config.d_model, 2), torch.arange(1, config.d_model, 2)])


def _vectors(config: ModelConfig) -> Mapping[str, str]:
    """Return the names of our matrices with a row per word, by Marian's."""
    if config.tie_embeddings:
        return {"Wemb": "vectors.shared"}
    return {
        "encoder_Wemb": "vectors.source",
        "decoder_Wemb": "vectors.target",
        "decoder_ff_logit_out_W": "vectors.projection",
    }


def _is_projection(ours: str) -> bool:
    """Return whether Marian stores a matrix with a row per word as one with a column per word."""
    return ours == "vectors.projection"


def _filled(rows: Tensor, value: float) -> Tensor:
    """Return rows up to a multiple of `ROW_MULTIPLE`, with a value in the additional ones."""
    added = rows.new_full((-len(rows) % ROW_MULTIPLE, *rows.shape[1:]), value)
    return torch.cat([rows, added])


def _reordered(weight: Tensor, order: Tensor, part: Part) -> Tensor:
    """Return a weight with the coordinates of the residual stream in another order."""
    if part.by_row:
        return weight[order]
    return weight[:, order] if part.is_matrix else weight


def _parts(config: ModelConfig) -> Iterator[Part]:
    """Yield all arrays but those with a row or number per word, in the order of our parts."""
    for stack, layers in (("encoder", config.encoder_depth), ("decoder", config.decoder_depth)):
        for index in range(layers):
            yield from _layer(f"{stack}_l{index + 1}", f"{stack}.{index}")


def _layer(theirs: str, ours: str) -> Iterator[Part]:
    yield from _reads(f"{theirs}_self", "qkv", f"{ours}.attention.query_key_value")
    yield from _linear(f"{theirs}_self", "o", f"{ours}.attention.output", by_row=True)
    yield from _norm(f"{theirs}_self_Wo", f"{ours}.attention_residual.norm")
    if theirs.startswith("decoder"):
        yield from _reads(f"{theirs}_context", "q", f"{ours}.cross_attention.query")
        yield from _reads(f"{theirs}_context", "kv", f"{ours}.cross_attention.key_value")
        yield from _linear(f"{theirs}_context", "o", f"{ours}.cross_attention.output", by_row=True)
        yield from _norm(f"{theirs}_context_Wo", f"{ours}.cross_attention_residual.norm")
    yield from _linear(f"{theirs}_ffn", "1", f"{ours}.feed_forward.inner", by_row=False)
    yield from _linear(f"{theirs}_ffn", "2", f"{ours}.feed_forward.outer", by_row=True)
    yield from _norm(f"{theirs}_ffn_ffn", f"{ours}.feed_forward_residual.norm")


def _reads(theirs: str, letters: str, ours: str) -> Iterator[Part]:
    """Yield a linear layer that reads the residual stream, which Marian splits into one per letter."""
    for part, letter in enumerate(letters):
        yield Part(f"{theirs}_W{letter}", f"{ours}.weight", False, part, len(letters))
        yield Part(f"{theirs}_b{letter}", f"{ours}.bias", False, part, len(letters))


def _linear(theirs: str, letter: str, ours: str, *, by_row: bool) -> Iterator[Part]:
    yield Part(f"{theirs}_W{letter}", f"{ours}.weight", by_row)
    yield Part(f"{theirs}_b{letter}", f"{ours}.bias", by_row)


def _norm(theirs: str, ours: str) -> Iterator[Part]:
    yield Part(f"{theirs}_ln_scale", f"{ours}.weight", True)
    yield Part(f"{theirs}_ln_bias", f"{ours}.bias", True)
