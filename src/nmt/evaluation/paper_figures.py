"""Find the figure of "Attention Is All You Need" that a run can be compared with."""

from nmt.config.model import ModelConfig
from nmt.config.tree import Config
from nmt.evaluation.paper_table3 import TABLE_3, Row

NEWSTEST2014 = {
    ("wmt14_en_de", "base"): 27.3,
    ("wmt14_en_de", "big"): 28.4,
    ("wmt14_en_fr", "base"): 38.1,
    ("wmt14_en_fr", "big"): 41.8,
}
"""Table 2: BLEU on newstest2014, by corpus and size of the model."""

WSJ = {"parsing/wsj": 91.3, "parsing/wsj_semi": 92.7}
"""Table 4: bracket F1 on section 23, by experiment."""

SIZES = {(6, 512, 2048, 8): "base", (6, 1024, 4096, 16): "big"}
"""The paper's name of a model by its layers, d_model, d_ff and heads."""


def paper_score(metric: str, config: Config, split: str) -> float | None:
    """Return the paper's score by a metric for this model on this split, or None if it has none."""
    if metric == "bleu_paper":
        return paper_bleu(config, split)
    return WSJ.get(config.name) if metric == "bracket_f1" and split == "test" else None


def paper_bleu(config: Config, split: str) -> float | None:
    """Return the paper's BLEU for this model on this split, or None if it has none."""
    row = _row(config.name)
    if split == "valid" and row:
        return row.bleu
    return NEWSTEST2014.get((config.data.corpus, _size(config.model))) if split == "test" else None


def paper_perplexity(config: Config) -> float | None:
    """Return the paper's perplexity on the development set, or None if the run is not a row of Table 3."""
    row = _row(config.name)
    return row.perplexity if row else None


def _size(model: ModelConfig) -> str:
    if model.encoder_depth != model.decoder_depth:
        return ""
    return SIZES.get((model.encoder_depth, model.d_model, model.d_ff, model.heads), "")


def _row(name: str) -> Row | None:
    folder, _, row = name.rpartition("/")
    return TABLE_3.get(row) if folder == "table3" else None
