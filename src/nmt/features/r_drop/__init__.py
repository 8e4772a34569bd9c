"""R-Drop (Liang et al., 2021): two passes with different dropout masks, whose distributions are to agree."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="R-Drop: two passes over each batch, whose predictions are to agree",
    settings={"training": Group("nmt.features.r_drop.settings:RDropTraining")},
    check="nmt.features.r_drop.settings:check",
    uses="nmt.features.r_drop.settings:uses",
    word_loss="nmt.features.r_drop.loss:word_loss",
)
