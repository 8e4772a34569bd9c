"""Draw the attention weights of every head for a few sentences."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from nmt.decoding.attention import KINDS, Attention
from nmt.decoding.piece_attention import Weights
from nmt.features.report.charts import Spec
from nmt.features.report.translations import Sentence
from nmt.text.tokenizer import Tokenizer

MIN_PIECES, MAX_PIECES = 4, 31
"""The range of word pieces that the longer side of a drawn sentence pair may have, without marks."""
MAX_BYTES = 1_200_000
"""The largest size of all weights in a page, at one byte per weight."""
QUANTILES = (0.9, 0.5, 0.1)
"""The quantiles of chrF whose sentences are drawn: a good, an average and a bad translation."""
CELL_PIXELS = 14
"""Width and height of a weight in a heatmap."""


def choose_sentences(found: Sequence[Sentence], tokenizer: Tokenizer) -> list[Sentence]:
    """Return a good, an average and a bad translation that are short enough to draw."""
    texts = ["".join(sentence.hypothesis) for sentence in found]
    lengths = zip(
        tokenizer.encode_input([sentence.source for sentence in found]), tokenizer.encode_target(texts), strict=True
    )
    ranked = sorted(
        (
            sentence
            for sentence, sides in zip(found, lengths, strict=True)
            if MIN_PIECES <= max(map(len, sides)) <= MAX_PIECES
        ),
        key=lambda sentence: sentence.chrf,
    )
    indices = dict.fromkeys(round(quantile * (len(ranked) - 1)) for quantile in QUANTILES)
    return [ranked[index] for index in indices] if ranked else []


@dataclass(frozen=True, slots=True)
class EncodedAttention:
    """Attention weights as the script of the page reads them."""

    source: list[str]
    target: list[str]
    layers: dict[str, int]
    """The number of layers by kind of attention."""
    heads: int
    encoder: str
    """Weights in base64, one byte per weight; 255 means 1."""
    decoder: str
    cross: str


def encode_attentions(attentions: Sequence[Attention]) -> list[EncodedAttention]:
    """Encode the first sentences for the page: as many as MAX_BYTES allows, but at least one."""
    sizes = accumulate(each.size for each in attentions)
    return [_encode(each) for index, (each, size) in enumerate(zip(attentions, sizes, strict=True))
            if size <= MAX_BYTES or index == 0]  # fmt: skip


def _encode(each: Attention) -> EncodedAttention:
    return EncodedAttention(
        source=each.source,
        target=each.target,
        layers={kind: len(each.of_kind(kind)[0]) for kind in KINDS},
        heads=each.encoder.shape[1],
        encoder=_base64(each.encoder),
        decoder=_base64(each.decoder),
        cross=_base64(each.cross),
    )


def _base64(weights: Weights) -> str:
    return base64.b64encode(np.round(255 * weights).astype(np.uint8).tobytes()).decode()


def heatmaps(shown: Attention, kind: str, layer: int) -> Spec:
    """Return a chart of all heads (columns) of one layer or, if `layer` is 0, of all layers (rows)."""
    weights, queries, keys = shown.of_kind(kind)
    layers = range(len(weights)) if layer == 0 else [layer - 1]
    values = [
        {
            "layer": f"layer {index + 1}", "head": f"head {head + 1}",
            "query": row, "key": column, "weight": round(float(weight), 4),
        }
        for index in layers
        for (head, row, column), weight in np.ndenumerate(weights[index])
    ]  # fmt: skip
    header = {"title": None, "labelFontSize": 13, "labelFontWeight": "bold"}
    colours = {"range": ["#ffffff", "#1f5fbf"], "domain": [0, 1]}
    return {
        "data": {"values": values},
        "facet": {
            "row": {"field": "layer", "sort": None, "header": header},
            "column": {"field": "head", "sort": None, "header": header},
        },
        "spec": {
            "width": CELL_PIXELS * len(keys),
            "height": CELL_PIXELS * len(queries),
            "mark": "rect",
            "encoding": {
                "x": _piece_axis("key", keys, label_angle=-90),
                "y": _piece_axis("query", queries, label_angle=0),
                "color": {"field": "weight", "type": "quantitative", "scale": colours},
            },
        },
        "config": {"view": {"stroke": "#ddd"}, "legend": {"title": None}},
    }


def _piece_axis(field: str, pieces: list[str], label_angle: int) -> Spec:
    """Label the positions of a sentence with its word pieces."""
    labels = json.dumps([_plain(piece) for piece in pieces])
    axis = {
        "labelExpr": f"{labels}[datum.value]", "title": "", "domain": False, "ticks": False, "labelAngle": label_angle,
    }  # fmt: skip
    return {"field": field, "type": "ordinal", "axis": axis}


def _plain(piece: str) -> str:
    """Return a piece with a visible mark for the space before a word."""
    return piece.replace("▁", "·")
