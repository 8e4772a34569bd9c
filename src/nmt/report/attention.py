"""Attention weights of every head, for a few sentences."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.report.charts import Spec
from nmt.report.translations import Sentence
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer

LONGEST = 32
"""The largest number of word pieces per side in a sentence that is drawn."""
MOST_BYTES = 1_200_000
"""The largest size of all weights in a page, at one byte per weight."""
SENTENCES = 3
START, END = "⟨s⟩", "⟨/s⟩"

Weights = npt.NDArray[np.float32]
"""(layers, heads, queries, keys)."""


@dataclass(frozen=True, slots=True)
class Attention:
    """All attention weights of a sentence pair; queries attend to keys."""

    source: list[str]
    """Word pieces that the encoder reads."""
    target: list[str]
    """Word pieces that the decoder reads: a start mark first."""
    encoder: Weights
    decoder: Weights
    cross: Weights

    def part(self, name: str) -> tuple[Weights, list[str], list[str]]:
        """Return the weights of encoder, decoder or cross attention, with the pieces of queries and keys."""
        sides = {
            "encoder": (self.encoder, self.source, self.source),
            "decoder": (self.decoder, self.target, self.target),
            "cross": (self.cross, self.target, self.source),
        }
        return sides[name]

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.encoder.size + self.decoder.size + self.cross.size


def attention(model: TranslationModel, tokenizer: Tokenizer, source: str, target: str) -> Attention:
    """Return the attention weights of a sentence and its translation."""
    source_ids, target_ids = tokenizer.encode_source([source])[0], tokenizer.encode_target([target])[0]
    device = model.projection.device
    stream = Packed.from_sentences([[*source_ids, EOS]]).to(device)
    prefix = Packed.from_sentences([[BOS, *target_ids]]).to(device)
    with torch.no_grad():
        maps = model.attention(stream, prefix)
    return Attention(
        [*tokenizer.source_pieces(source_ids), END],
        [START, *tokenizer.target_pieces(target_ids)],
        *(weights.cpu().numpy() for weights in maps),
    )


def choose(found: Sequence[Sentence], tokenizer: Tokenizer) -> list[Sentence]:
    """Return a good, an average and a bad translation that are short enough to draw."""
    texts = ["".join(sentence.hypothesis) for sentence in found]
    lengths = zip(
        tokenizer.encode_source([sentence.source for sentence in found]), tokenizer.encode_target(texts), strict=True
    )
    ranked = sorted(
        (sentence for sentence, sides in zip(found, lengths, strict=True) if 3 < max(map(len, sides)) < LONGEST),
        key=lambda sentence: sentence.chrf,
    )
    places = [round(share * (len(ranked) - 1)) for share in (0.9, 0.5, 0.1)][:SENTENCES]
    return [ranked[place] for place in dict.fromkeys(places)] if ranked else []


def packed(attentions: Sequence[Attention]) -> list[dict[str, Any]]:
    """Return the data of the page: one byte per weight, and as many sentences as MOST_BYTES allows."""
    room = MOST_BYTES
    fitting: list[Attention] = []
    for each in attentions:
        room -= each.size
        if room >= 0 or not fitting:
            fitting.append(each)
    return [
        {
            "source": each.source,
            "target": each.target,
            "layers": {part: len(each.part(part)[0]) for part in ("encoder", "decoder", "cross")},
            "heads": each.encoder.shape[1],
            **{part: _encode(each.part(part)[0]) for part in ("encoder", "decoder", "cross")},
        }
        for each in fitting
    ]


def _encode(weights: Weights) -> str:
    return base64.b64encode(np.round(255 * weights).astype(np.uint8).tobytes()).decode()


def picture(shown: Attention, part: str, layer: int) -> Spec:
    """Return a chart of all heads (columns) of one layer or, if `layer` is 0, of all layers (rows)."""
    weights, queries, keys = shown.part(part)
    layers = range(len(weights)) if layer == 0 else [layer - 1]
    values = [
        {
            "layer": f"layer {index + 1}", "head": f"head {head + 1}",
            "query": row, "key": column, "weight": round(float(weight), 4),
        }
        for index in layers
        for (head, row, column), weight in np.ndenumerate(weights[index])
    ]  # fmt: skip
    cell = 14

    def axis(field: str, pieces: list[str], title: str) -> dict[str, Any]:
        labels = {
            "labelExpr": f"{json.dumps([_plain(piece) for piece in pieces])}[datum.value]",
            "title": title,
            "domain": False,
        }
        return {"field": field, "type": "ordinal", "axis": {**labels, "ticks": False, "labelAngle": -90}}

    rows = axis("query", queries, "")
    rows["axis"]["labelAngle"] = 0
    header = {"title": None, "labelFontSize": 13, "labelFontWeight": "bold"}
    return {
        "data": {"values": values},
        "facet": {
            "row": {"field": "layer", "sort": None, "header": header},
            "column": {"field": "head", "sort": None, "header": header},
        },
        "spec": {
            "width": cell * len(keys),
            "height": cell * len(queries),
            "mark": "rect",
            "encoding": {
                "x": axis("key", keys, ""),
                "y": rows,
                "color": {
                    "field": "weight",
                    "type": "quantitative",
                    "scale": {"range": ["#ffffff", "#1f5fbf"], "domain": [0, 1]},
                },
            },
        },
        "config": {"view": {"stroke": "#ddd"}, "legend": {"title": None}},
    }


def _plain(piece: str) -> str:
    return piece.replace("▁", "·")
