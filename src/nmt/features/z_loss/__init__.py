"""The z-loss (Chowdhery et al., 2022), which keeps the logits from drifting away from log-probabilities."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="z-loss: a small loss that keeps the logits near log-probabilities",
    settings={"training": Group("nmt.features.z_loss.settings:ZLossTraining")},
    uses="nmt.features.z_loss.settings:uses",
    term="nmt.features.z_loss.loss:z_loss",
    sections=("nmt.features.z_loss.section:weight_section",),
)
