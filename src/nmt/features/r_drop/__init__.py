"""R-Drop (Liang et al., 2021): two passes with different dropout masks, whose distributions are to agree."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="R-Drop: two passes over each batch, whose predictions are to agree",
    word_loss="nmt.training.r_drop:word_loss",
)
