"""The figures of "Attention Is All You Need", and which of them a run can be compared with."""

from collections.abc import Mapping
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.config.tree import Config

NEWSTEST2014 = {
    ("wmt14_en_de", "base"): 27.3,
    ("wmt14_en_de", "big"): 28.4,
    ("wmt14_en_fr", "base"): 38.1,
    ("wmt14_en_fr", "big"): 41.8,
}
"""Table 2: BLEU on newstest2014, by corpus and size of the model."""

WSJ = {"parsing/wsj": 91.3, "parsing/wsj_semi": 92.7}
"""Table 4: bracket F1 on section 23, by experiment."""

SIZES = {(6, 6, 512, 2048, 8): "base", (6, 6, 1024, 4096, 16): "big"}
"""The paper's name of a model by the layers of both stacks, d_model, d_ff and heads."""


class Row(NamedTuple):
    """A row of Table 3: its change to the base model, and the paper's results on newstest2013."""

    change: str
    perplexity: float
    bleu: float
    parameters: int | None = None
    """Parameters in millions."""
    hours: float | None = None
    """Hours of training on eight P100 GPUs."""


TABLE_3: Mapping[str, Row] = {
    "base": Row("", 4.92, 25.8, 65, 12),
    "a1": Row("h 1, d_k = d_v = 512", 5.29, 24.9),
    "a2": Row("h 4, d_k = d_v = 128", 5.00, 25.5),
    "a3": Row("h 16, d_k = d_v = 32", 4.91, 25.8),
    "a4": Row("h 32, d_k = d_v = 16", 5.01, 25.4),
    "b1": Row("d_k 16", 5.16, 25.1, 58),
    "b2": Row("d_k 32", 5.01, 25.4, 60),
    "c1": Row("N 2", 6.11, 23.7, 36),
    "c2": Row("N 4", 5.19, 25.3, 50),
    "c3": Row("N 8", 4.88, 25.5, 80),
    "c4": Row("d_model 256, d_k = d_v = 32", 5.75, 24.5, 28),
    "c5": Row("d_model 1024, d_k = d_v = 128", 4.66, 26.0, 168),
    "c6": Row("d_ff 1024", 5.12, 25.4, 53),
    "c7": Row("d_ff 4096", 4.75, 26.2, 90),
    "d1": Row("dropout 0.0", 5.77, 24.6),
    "d2": Row("dropout 0.2", 4.95, 25.5),
    "d3": Row("label smoothing 0.0", 4.67, 25.3),
    "d4": Row("label smoothing 0.2", 5.47, 25.7),
    "e": Row("learned positions", 4.92, 25.7),
    "big": Row("d_model 1024, d_ff 4096, h 16, dropout 0.3, 300 K steps", 4.33, 26.4, 213, 84),
}
"""The rows by the names of their experiments in conf/experiment/table3/, in the paper's order."""


def paper_score(metric: str, config: Config, split: str) -> float | None:
    """Return the paper's figure by a metric, or its perplexity, for this run on this split; None if it has none."""
    folder, _, row = config.name.rpartition("/")
    if split == "valid" and folder == "table3" and row in TABLE_3:
        return {"bleu_paper": TABLE_3[row].bleu, "perplexity": TABLE_3[row].perplexity}.get(metric)
    if split != "test":
        return None
    model = config.model
    size = SIZES.get((model.encoder_depth, model.decoder_depth, model.d_model, model.d_ff, model.heads), "")
    bleu = NEWSTEST2014.get((config.data.corpus, size)) if _is_newstest2014(config.data) else None
    return {"bleu_paper": bleu, "bracket_f1": WSJ.get(config.name)}.get(metric)


def _is_newstest2014(data: DataConfig) -> bool:
    """Return whether the test set is the paper's: that of WMT14 on the Hub, or sacreBLEU's."""
    is_of_hub = (data.source, data.hub_dataset, data.test) == ("hub", DataConfig().hub_dataset, ["test"])
    return is_of_hub or data.test in (["sacrebleu:wmt14"], ["sacrebleu:wmt14/full"])
