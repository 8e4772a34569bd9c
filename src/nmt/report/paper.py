"""The figures of "Attention Is All You Need" that a run can be put beside."""

from nmt.config.schema import Config, ModelConfig

NEWSTEST2014 = {
    ("wmt14_en_de", "base"): 27.3,
    ("wmt14_en_de", "big"): 28.4,
    ("wmt14_en_fr", "base"): 38.1,
    ("wmt14_en_fr", "big"): 41.8,
}
"""Table 2: BLEU of a corpus's test set by the size of the model."""

TABLE_3 = {
    "base": (4.92, 25.8), "big": (4.33, 26.4), "e": (4.92, 25.7),
    "a1": (5.29, 24.9), "a2": (5.00, 25.5), "a3": (4.91, 25.8), "a4": (5.01, 25.4),
    "b1": (5.16, 25.1), "b2": (5.01, 25.4),
    "c1": (6.11, 23.7), "c2": (5.19, 25.3), "c3": (4.88, 25.5), "c4": (5.75, 24.5),
    "c5": (4.66, 26.0), "c6": (5.12, 25.4), "c7": (4.75, 26.2),
    "d1": (5.77, 24.6), "d2": (4.95, 25.5), "d3": (4.67, 25.3), "d4": (5.47, 25.7),
}  # fmt: skip
"""Table 3: perplexity and BLEU on newstest2013 by row."""

SIZES = {(6, 512, 2048, 8): "base", (6, 1024, 4096, 16): "big"}


def paper_bleu(config: Config, split: str) -> float | None:
    """The paper's BLEU of such a model on such a split; None where it has none."""
    row = _row(config.name)
    if split == "valid" and row:
        return row[1]
    return NEWSTEST2014.get((config.data.corpus, _size(config.model))) if split == "test" else None


def paper_perplexity(config: Config) -> float | None:
    """The paper's perplexity on the development set, for the rows of Table 3."""
    row = _row(config.name)
    return row[0] if row else None


def _size(model: ModelConfig) -> str:
    return SIZES.get((model.layers, model.d_model, model.d_ff, model.heads), "")


def _row(name: str) -> tuple[float, float] | None:
    folder, _, row = name.rpartition("/")
    return TABLE_3.get(row) if folder == "table3" else None
